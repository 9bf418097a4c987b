"""Runs with timestamp deltas of several bytes have the plain loop's numbers."""

from __future__ import annotations

from random import Random

import pytest

from tests.wire.records.batches import NOW, batch_of_payload
from tests.wire.records.decode.test_reading import assert_all_forms_agree
from wire.records import RecordBatch
from wire.records.decode.runs import NUMPY_COUNT_MIN, find_runs
from wire.records.encode.joins import encode_record
from wire.records.varint import varint_size


@pytest.mark.parametrize("size", range(2, 11))
def test_deltas_of_several_bytes(size: int) -> None:
    for count in (20, 63, NUMPY_COUNT_MIN, 400):
        payload = _payload(size, count)
        assert find_runs(payload, count) is not None
        for base in (0, NOW, -(1 << 63), (1 << 63) - 1):
            batch = RecordBatch(batch_of_payload(payload, count, base_timestamp=base))
            assert_all_forms_agree(batch)


def _payload(size: int, count: int) -> bytes:
    """Return records with timestamp deltas of this size in bytes."""
    random = Random(f"{size} {count}")
    least, end = 1 << 7 * (size - 1) - 1, 1 << min(7 * size - 1, 63)
    magnitudes = [random.randrange(least, end) for _ in range(count)]
    deltas = [random.choice([number, -number - 1]) for number in magnitudes]
    assert {varint_size(delta) for delta in deltas} == {size}
    return b"".join(
        encode_record(offset_delta=index, timestamp_delta=delta, key=None, value=b"value")
        for index, delta in enumerate(deltas)
    )
