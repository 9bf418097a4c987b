"""Runs whose timestamp deltas take several bytes each: the numbers that the plain loop reads."""

from __future__ import annotations

from random import Random

import pytest

from tests.wire.records.batches import NOW, batch_of_payload
from tests.wire.records.decode.test_reading import assert_all_forms_agree
from wire.records import RecordBatch
from wire.records.decode.fast.runs import NUMPY_COUNT_MIN, find_runs
from wire.records.encode.joins import encode_record
from wire.records.varint import varint_size


@pytest.mark.parametrize("size", range(2, 11))
@pytest.mark.parametrize("count", [20, 63, NUMPY_COUNT_MIN, 400])
@pytest.mark.parametrize("base", [0, NOW, -(1 << 63), (1 << 63) - 1])
def test_deltas_of_several_bytes(size: int, count: int, base: int) -> None:
    random = Random(f"{size} {count}")
    least, end = 1 << 7 * (size - 1) - 1, 1 << min(7 * size - 1, 63)
    magnitudes = [random.randrange(least, end) for _ in range(count)]
    deltas = [random.choice([number, -number - 1]) for number in magnitudes]
    assert {varint_size(delta) for delta in deltas} == {size}
    payload = b"".join(
        encode_record(offset_delta=index, timestamp_delta=delta, key=None, value=b"value")
        for index, delta in enumerate(deltas)
    )
    assert find_runs(payload, count) is not None
    assert_all_forms_agree(RecordBatch(batch_of_payload(payload, count, base_timestamp=base)))
