"""The acquired records of an answer, and the gaps between them, as a model says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embedlog import AcknowledgeType, TopicPartition
from embedlog.client.share.fetched import FetchedPartition
from wire.records import build_batch
from wire.schemas.share_fetch import AcquiredRecords, PartitionData

HERE = TopicPartition("jobs", 0)
NO_CONVERTERS = (None, None)

# Batches of a compacted log: (number of missing offsets before it, number of records, is control).
LOGS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.booleans()), max_size=6)
# Acquired ranges: (offsets before it that are not acquired, number of offsets, delivery count).
RANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(1, 5)), max_size=6)


def log_of(batches: list[tuple[int, int, bool]]) -> tuple[bytes, set[int]]:
    """Return the bytes of a log, and the offsets that have records."""
    data, offsets, end = b"", set(), 0
    for hole, count, is_control in batches:
        base = end + hole
        values = [b"%d" % offset for offset in range(base, base + count)]
        data += build_batch(values, timestamps=1, base_offset=base, control=is_control)
        end = base + count
        offsets |= set() if is_control else set(range(base, end))
    return data, offsets


def acquired_of(ranges: list[tuple[int, int, int]]) -> tuple[list[AcquiredRecords], dict[int, int]]:
    """Return the ranges of an answer, and the delivery count of each acquired offset."""
    found, counts, end = [], {}, 0
    for hole, size, count in ranges:
        first = end + hole
        end = first + size
        found.append(AcquiredRecords(first_offset=first, last_offset=end - 1, delivery_count=count))
        counts.update(dict.fromkeys(range(first, end), count))
    return found, counts


def fetched(data: bytes, ranges: list[AcquiredRecords]) -> FetchedPartition:
    answer = PartitionData(records=memoryview(data), acquired_records=ranges)
    return FetchedPartition(HERE, b"i" * 16, 1, answer, check_crcs=True)


@given(LOGS, RANGES)
def test_each_acquired_offset_is_a_record_or_a_gap(
    batches: list[tuple[int, int, bool]], ranges: list[tuple[int, int, int]]
) -> None:
    data, offsets = log_of(batches)
    acquired, counts = acquired_of(ranges)
    partition = fetched(data, acquired)
    records = []
    while not partition.is_drained:
        taken, failure = partition.take(NO_CONVERTERS)
        assert failure is None
        records += taken
    assert {record.offset: record.delivery_count for record in records} == {
        offset: count for offset, count in counts.items() if offset in offsets
    }
    assert [record.value for record in records] == [b"%d" % each.offset for each in records]
    assert sorted(partition.gaps) == sorted(counts.keys() - offsets)


@given(LOGS, RANGES, st.integers(0, 4))
def test_all_offsets_that_are_left_can_be_released(
    batches: list[tuple[int, int, bool]], ranges: list[tuple[int, int, int]], steps: int
) -> None:
    data, _ = log_of(batches)
    acquired, counts = acquired_of(ranges)
    partition = fetched(data, acquired)
    seen: list[int] = []
    for _ in range(steps):
        taken, _ = partition.take(NO_CONVERTERS)
        seen += [record.offset for record in taken]
    seen += partition.left() + partition.gaps
    assert sorted(seen) == sorted(counts)


def test_bytes_that_are_no_batch_release_the_rest() -> None:
    data, _ = log_of([(0, 2, False)])
    broken = data + bytes(8) + b"\0\0\0\1" + bytes(20)
    acquired, _ = acquired_of([(0, 5, 1)])
    partition = fetched(broken, acquired)
    taken, failure = partition.take(NO_CONVERTERS)
    assert [record.offset for record in taken] == [0, 1]
    assert failure is None
    taken, failure = partition.take(NO_CONVERTERS)
    assert not taken
    assert failure is not None
    assert (failure.offsets, failure.kind) == ([2, 3, 4], AcknowledgeType.RELEASE)
    assert partition.is_drained
