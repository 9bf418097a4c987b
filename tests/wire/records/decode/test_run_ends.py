"""Where batches that look alike are not read together, and what a scan counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.records.batches import NOW
from wire.records import Codec, RecordBatch, build_batch, iter_batches, scan, tuples
from wire.records.decode.scan import scan_plainly
from wire.records.decode.uniform import RunRows, next_rows
from wire.records.encode.built import BuiltBatch
from wire.records.errors import TooManyHeaders
from wire.records.known import KNOWN
from wire.records.retain import retain

COUNT = 10


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    KNOWN.forget()


def batch(base_offset: int, count: int = COUNT, **more: Any) -> bytes:
    values = [b"%3d" % (base_offset + index) for index in range(count)]
    return build_batch(values, timestamps=NOW, base_offset=base_offset, **more)


def read(data: bytes, *, offset: int = 0) -> RunRows | None:
    """Read twice, because the first batch of its size and count may make the shape only."""
    for _ in range(2):
        found = next_rows(
            memoryview(data), 0, offset=offset, count_max=1_000, check_crcs=True, several=True
        )
    return found


def test_alike_batches_are_read_together() -> None:
    found = read(batch(0) + batch(COUNT))
    assert found is not None
    assert list(found.offsets) == list(range(2 * COUNT))


@pytest.mark.parametrize(
    "more",
    [
        {"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"control": True},
        {"codec": Codec.GZIP},
    ],
    ids=["transactional", "control", "compressed"],
)
def test_batches_that_need_more_care_are_left_to_others(more: dict[str, Any]) -> None:
    assert read(batch(0, **more) + batch(COUNT, **more)) is None


def test_a_batch_that_begins_before_the_offset_is_left_to_others() -> None:
    data = batch(0) + batch(COUNT)
    assert read(data) is not None
    assert read(data, offset=1) is None
    alone = read(batch(COUNT), offset=COUNT)
    assert alone is not None
    assert alone.offsets[0] == COUNT


def test_offsets_behind_a_gap_are_their_own() -> None:
    found = read(batch(0) + batch(2 * COUNT))
    assert found is not None
    assert (list(found.offsets), found.next_offset) == (list(range(COUNT)), COUNT)


def test_offsets_behind_a_compacted_end_are_their_own() -> None:
    data = b""
    for base_offset in (0, COUNT + 1):
        whole = RecordBatch(batch(base_offset, COUNT + 1))
        data += retain(whole, range(COUNT))
    found = read(data)
    assert found is not None
    assert (list(found.offsets), found.next_offset) == (list(range(COUNT)), COUNT + 1)
    offsets = [row[0] for each in iter_batches(data) for row in tuples(each)]
    assert offsets == [*range(COUNT), *range(COUNT + 1, 2 * COUNT + 1)]


def test_a_batch_may_begin_with_its_latest_record() -> None:
    stamps = [NOW + 9, NOW, NOW + 5]
    built = BuiltBatch([b"v"] * 3, timestamps=stamps)
    assert (built.min_timestamp, built.max_timestamp) == (NOW, NOW + 9)
    for data in (bytes(built), build_batch([b"v"] * 3, timestamps=stamps)):
        assert [row[1] for row in tuples(RecordBatch(data))] == stamps


def test_headers_of_all_records_count_together() -> None:
    headers: list[Any] = [[("h", b"")] * 2] * 3
    found = RecordBatch(build_batch([b"v"] * 3, timestamps=NOW, headers=headers))
    assert scan(found, header_count_max=6).consecutive
    with pytest.raises(TooManyHeaders):
        scan(found, header_count_max=5)


@pytest.mark.parametrize("without_key", [0, 8_191, 8_192, 8_999, -1])
def test_a_scan_in_parts_finds_the_first_record_without_a_key(without_key: int) -> None:
    count = 9_000  # a part has 8,192
    keys: list[bytes | None] = [b"k"] * count
    if without_key >= 0:
        keys[without_key] = None
    found = RecordBatch(build_batch([b"v"] * count, keys=keys, timestamps=NOW))
    facts = scan_plainly(bytes(found.payload()), count, NOW)
    assert facts.first_null_key_index == without_key
