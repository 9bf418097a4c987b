"""The sizes counted for batch.size and max.request.size, compared with the written sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.client.producer.sizes import (
    BATCH_OVERHEAD,
    exact_size,
    record_size,
    size_upper_bound,
)
from tests.support import sizes
from wire.records import build_batch

LENGTHS = st.sampled_from([0, 1, 55, 56, 57, 58, 63, 64, 100, 8191, 8192])
FIELDS = st.one_of(st.none(), LENGTHS.map(bytes))
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h", "grü"]), FIELDS), max_size=2)
DELTAS = st.sampled_from([-65, -64, -1, 0, 1, 63, 64, 8192, 2**40])
RECORDS = st.tuples(FIELDS, FIELDS, DELTAS, HEADERS)


def _written(records: list[Any]) -> int:
    keys, values, deltas, headers = zip(*records, strict=True)
    stamps = [2**41 + delta for delta in deltas]
    return len(build_batch(values, keys=keys, timestamps=stamps, headers=headers)) - BATCH_OVERHEAD


@pytest.mark.slow
@given(st.lists(RECORDS, min_size=1, max_size=80), st.integers(0, 80))
@settings(max_examples=sizes.size(60, full=150), deadline=None)
def test_the_exact_size_is_what_is_written(records: list[Any], start: int) -> None:
    start %= len(records)
    keys, values, deltas, headers = map(list, zip(*records, strict=True))
    stamps = [2**41 + delta for delta in deltas]
    whole = exact_size(values, keys, stamps, headers, 0)
    assert whole == _written(records)
    rest = exact_size(values, keys, stamps, headers, start)
    before = _written(records[:start]) if start else 0
    assert before + rest == whole


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 63, 64, 65, 66, 300, 8192, 8193])
@pytest.mark.parametrize("length", [0, 5, 54, 55, 56, 57, 58, 63, 64, 65, 100])
@pytest.mark.parametrize("key", [None, b"", b"k", bytes(63), bytes(64)])
def test_the_short_cut_for_ordinary_records_counts_the_same(
    count: int, length: int, key: bytes | None
) -> None:
    if count > 300 and length not in {0, 57, 100}:
        return
    values: list[bytes | None] = [bytes(length)] * count
    keys = None if key is None else [key] * count
    stamps = [1000 + number % 64 for number in range(count)]
    written = len(build_batch(values, keys=keys, timestamps=stamps)) - BATCH_OVERHEAD
    assert exact_size(values, keys, stamps, None, 0) == written  # type: ignore[arg-type]
    if count > 1:
        first = len(build_batch(values[:1], keys=keys and keys[:1], timestamps=[1000]))
        rest = exact_size(values, keys, stamps, None, 1)  # type: ignore[arg-type]
        assert first - BATCH_OVERHEAD + rest == written


@given(FIELDS, FIELDS, HEADERS)
def test_estimates_are_never_too_small(key: Any, value: Any, headers: Any) -> None:
    written = len(build_batch([value], keys=[key], timestamps=[1], headers=[headers]))
    assert record_size(key, value, headers) >= written - BATCH_OVERHEAD
    # length 5, attributes 1, timestamp delta 10, offset delta 5: Kafka's bound, to the byte
    fixed = 4 if written - BATCH_OVERHEAD <= 64 else 5 if written < 8_255 else 6
    assert size_upper_bound(key, value, headers) == written + 21 - fixed
