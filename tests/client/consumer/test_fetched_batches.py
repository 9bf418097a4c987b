"""Aborted and compacted batches of one fetch: the records of each take, and the position."""

from __future__ import annotations

from typing import Any

from embedlog.client.consumer.completed_fetch import CompletedFetch
from embedlog.client.consumer.subscription_state import PartitionState
from embedlog.common import TopicPartition
from wire.records import RecordBatch, build_batch
from wire.records.control import control_key
from wire.records.retain import retain
from wire.schemas.fetch import AbortedTransaction, PartitionData

_ABORT = 0


def written(base_offset: int, count: int = 3, **more: Any) -> bytes:
    values = [b"%d" % (base_offset + index) for index in range(count)]
    return bytes(build_batch(values, timestamps=1_000, base_offset=base_offset, **more))


def of(producer_id: int, base_offset: int) -> bytes:
    """Build a batch of three records of a producer's transaction."""
    more = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    return written(base_offset, transactional=True, **more)


def marker(producer_id: int, offset: int) -> bytes:
    """Build the marker that aborts the producer's transaction."""
    return bytes(
        build_batch(
            [bytes(6)],
            keys=[control_key(_ABORT)],
            timestamps=1_000,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            control=True,
            transactional=True,
        )
    )


def fetched(data: bytes, *aborted: tuple[int, int], offset: int = 0) -> CompletedFetch:
    """`aborted` are transactions, as (producer id, first offset)."""
    state = PartitionState(TopicPartition("t", 0))
    state.seek(offset)
    gone = [AbortedTransaction(producer_id=who, first_offset=first) for who, first in aborted]
    answer = PartitionData(partition_index=0, records=data, aborted_transactions=gone)
    return CompletedFetch(state, answer, check_crcs=True, is_committed_only=True)


def offsets(fetch: CompletedFetch) -> list[int]:
    found: list[int] = []
    while taken := fetch.take(100).offsets:
        found += taken
    return found


def test_aborted_transactions_may_be_listed_in_any_order() -> None:
    data = of(1, 0) + of(2, 3) + marker(1, 6) + of(3, 7) + marker(2, 10) + of(1, 11)
    assert offsets(fetched(data, (2, 3), (1, 0))) == [7, 8, 9, 11, 12, 13]


def compacted(*indexes: int) -> bytes:
    """Build a batch that had the offsets 0 to 9, without the other records."""
    return retain(RecordBatch(written(0, 10)), indexes)


def test_the_position_passes_the_offsets_that_compaction_removed_at_the_end() -> None:
    fetch = fetched(compacted(0, 1, 2) + written(10))
    assert list(fetch.take(1).offsets) == [0]
    for expected, position in ((1, 2), (2, 10)):
        record = fetch.take_next()
        assert record is not None
        assert (record.offset, fetch.state.offset) == (expected, position)


def test_a_whole_batch_says_which_of_its_records_is_the_first_after_the_position() -> None:
    fetch = fetched(compacted(0, 3, 7, 9), offset=4)
    taken = fetch.take_batch()
    assert taken is not None
    assert taken[1] == 2
    assert fetch.state.offset == 10


def test_a_record_by_itself_is_the_next_one_after_each_way_to_take() -> None:
    fetch = fetched(written(0, 10) + written(10, 10))
    assert list(fetch.take(3).offsets) == [0, 1, 2]
    record = fetch.take_next()
    assert record is not None
    assert record.offset == 3
    assert list(fetch.take(100).offsets) == [*range(4, 10)]
    assert list(fetch.take(4).offsets) == [*range(10, 14)]
    record = fetch.take_next()
    assert record is not None
    assert record.offset == 14
