"""The caches of batches, and that each test begins with empty ones."""

from __future__ import annotations

import pytest

from wire.records import RecordBatch, build_batch
from wire.records.known import KNOWN, Kept


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_begins_with_empty_caches(number: int) -> None:
    caches = [each for each in vars(KNOWN).values() if isinstance(each, Kept | list)]
    assert len(caches) == len(vars(KNOWN))
    assert not any(caches)
    batch = build_batch([b"value"] * 100, timestamps=1)
    for _ in range(3):
        assert len(list(RecordBatch(batch).records())) == 100
    assert KNOWN.shape_sightings or KNOWN.shapes or KNOWN.layouts


def test_a_full_cache_is_cleared() -> None:
    kept: Kept[int, int] = Kept(2)
    for key in range(3):
        kept.keep(key, key)
    assert dict(kept) == {2: 2}
