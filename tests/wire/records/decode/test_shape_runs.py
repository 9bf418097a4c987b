"""Batches of one shape read together have the same records as each read alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from wire.records import RecordBatch, build_batch, iter_batches, tuples
from wire.records.batch import stamp
from wire.records.decode.uniform import RunRows, next_rows
from wire.records.format import HEADER_SIZE
from wire.records.known import KNOWN, Known

NOW = 1_700_000_000_000


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    KNOWN.forget()


def batches(count: int, each: int, key: bytes | None = None, **more: Any) -> list[bytearray]:
    """Return batches as in a log; the timestamps of every third batch differ."""
    found = []
    for number in range(count):
        stamps = [NOW + number + (index % 3 if number % 3 == 2 else 0) for index in range(each)]
        keys = None if key is None else [key] * each
        values = [b"%3d" % (index % 1000) for index in range(each)]
        data = bytearray(build_batch(values, keys=keys, timestamps=stamps, **more))
        stamp(data, base_offset=100 + number * each, leader_epoch=3)
        found.append(data)
    return found


def find(data: bytes, **more: Any) -> RunRows | None:
    asked = {"offset": 100, "count_max": 1 << 20, "check_crcs": True, **more}
    found = next_rows(memoryview(data), 0, several=True, **asked)
    return found if found is not None and found.end > RecordBatch(data).size else None


def expected(data: bytes, count: int) -> list[Any]:
    found = [record for batch in iter_batches(data) for record in tuples(batch)]
    return found[:count]


@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("each", [1, 2, 15, 64])
@pytest.mark.parametrize("log_time", [0, 1])
def test_all_records_of_all_batches(each: int, key: bytes | None, log_time: int) -> None:
    data = b"".join(batches(7, each, key, timestamp_type=log_time))
    find(data)  # the first batch of few records makes no shape
    found = find(data)
    assert found is not None
    assert list(found) == expected(data, 7 * each)
    assert (found.end, found.next_offset) == (len(data), 100 + 7 * each)
    assert (found.epoch, found.timestamp_type) == (3, log_time)


def test_no_more_than_are_wanted() -> None:
    data = b"".join(batches(7, 10))
    found = find(data, count_max=39)
    assert found is not None and len(found) == 30
    assert find(data, count_max=19) is None
    assert find(data, offset=101) is None, "the position is inside the first batch"
    assert find(data[:-1], count_max=1000) is not None
    assert find(b"".join(batches(2, 10))[:-1]) is None


@pytest.mark.parametrize(
    ("place", "byte"),
    [(7, 9), (11, 0), (15, 4), (16, 1), (17, 0), (22, 1), (22, 16), (26, 20), (60, 11)],
)
def test_a_batch_with_another_header_ends_it(place: int, byte: int) -> None:
    each = batches(6, 10)
    assert each[4][place] != byte
    each[4][place] = byte
    data = b"".join(each)
    for check_crcs in (False, True):
        found = find(data, check_crcs=check_crcs)
        if place == 17 and not check_crcs:
            assert found is not None and len(found) == 60
            continue
        assert found is not None and len(found) == 40
        assert found.end == sum(map(len, each[:4]))


@pytest.mark.parametrize("key", [None, b"key"])
def test_a_changed_byte_ends_it_or_is_read_as_it_is(key: bytes | None) -> None:
    random = Random(1)
    each = batches(4, 10, key)
    for place in range(HEADER_SIZE, len(each[0])):
        changed = bytearray(each[3])
        changed[place] ^= 1 << random.randrange(8)
        data = b"".join([*each[:3], changed])
        found = find(data, check_crcs=False)
        assert found is not None
        assert len(found) in {30, 40}
        assert list(found) == expected(data, 40) if len(found) == 40 else True
        intact = find(data)
        assert intact is not None and len(intact) == 30


def test_what_has_no_records_or_is_no_batch_is_none() -> None:
    (one,) = batches(1, 10)
    assert find(b"") is None
    assert find(bytes(one)) is None
    empty = bytearray(one[:HEADER_SIZE])
    empty[8:12] = (HEADER_SIZE - 12).to_bytes(4, "big")
    empty[57:61] = bytes(4)
    assert find(bytes(empty) * 4) is None
    for length in (-1, -12, 0, 48, 49):
        empty[8:12] = length.to_bytes(4, "big", signed=True)
        empty[57:61] = (1).to_bytes(4, "big")
        assert find(bytes(empty) * 4) is None


def test_few_readers_are_kept() -> None:
    known = Known()
    known.shape_readers.count_max = 2
    for each in (10, 11, 12, 10):
        data = b"".join(batches(3, each))
        found = find(data, known=known)
        assert found is not None and list(found) == expected(data, 3 * each)
        assert 0 < len(known.shape_readers) <= 2
    assert not KNOWN.shape_readers
    assert RecordBatch(data).record_count == 10
