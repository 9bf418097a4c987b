"""WriteTxnMarkers: one control batch in each partition, and the fetches that wait for it."""

from __future__ import annotations

import pytest

from embedlog.storage.validation.origin import AppendOrigin
from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from tests.golden.transaction_requests import markers
from wire.error_codes import ErrorCode
from wire.records import iter_batches
from wire.schemas.fetch import PartitionData

LONG_MS = 30_000
PRODUCER = 9, 0
COMMITTED = 1


def open_transaction(client: Client, topic: Topic) -> None:
    """Append one record of a transaction, as if the coordinator had verified it."""
    manager = client.broker.replica_manager
    data = simple(b"open", attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0)
    manager.append(manager.partition(topic[0], 0), data, acks=1, origin=AppendOrigin.COORDINATOR)


def mark(client: Client, topic: Topic, version: int, *, commit: bool = True) -> int:
    """End the transaction; return the error code."""
    request = markers(PRODUCER, (topic, 0), commit=commit)
    (marker,) = client.call(request, version).markers
    code: int = marker.topics[0].partitions[0].error_code
    return code


def only(answer: object) -> PartitionData:
    (topic,) = answer.responses  # type: ignore[attr-defined]
    found: PartitionData = topic.partitions[0]
    return found


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_wakes_fetches_of_committed_records(
    client: Client, version: int, commit: bool
) -> None:
    # One segment although the marker is years newer than the records: a fetch reads one segment.
    topic = client.make_topic(segment_ms=2**63 - 1)
    open_transaction(client, topic)
    reader = client.another()
    waiting = fetch(topic, 12, isolation_level=COMMITTED, max_wait_ms=LONG_MS, min_bytes=1)
    answer = reader.send(waiting, 12)
    client.wait_until_parked()
    client.call(produce(topic, 9, simple(b"behind")), 9)
    assert not answer.done()
    assert mark(client, topic, version, commit=commit) == ErrorCode.NONE
    found = only(answer.result())
    assert (found.high_watermark, found.last_stable_offset) == (3, 3)
    assert [each.first_offset for each in found.aborted_transactions] == ([] if commit else [0])
    assert [batch.is_control for batch in iter_batches(found.records)] == [False, False, True]
    reader.close()


def test_each_partition_has_an_answer_of_its_own(client: Client) -> None:
    topic = client.make_topic()
    open_transaction(client, topic)
    request = markers(PRODUCER, (topic, 0), (topic, 7), ("nothing", 0))
    (marker,) = client.call(request, 1).markers
    codes = {
        (found.name, each.partition_index): each.error_code
        for found in marker.topics
        for each in found.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {(topic[0], 0): 0, (topic[0], 7): unknown, ("nothing", 0): unknown}
    log = client.broker.replica_manager.partition(topic[0], 0).log
    assert (log.offsets.last_stable_offset, log.log_end_offset) == (2, 2)


@pytest.mark.parametrize(
    ("producer", "coordinator_epoch", "refusal"),
    [
        ((9, 3), 5, ErrorCode.INVALID_PRODUCER_EPOCH),
        ((9, 4), 4, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_refused_marker_writes_nothing(
    client: Client, producer: tuple[int, int], coordinator_epoch: int, refusal: int
) -> None:
    topic = client.make_topic()
    open_transaction(client, topic)
    client.call(markers((9, 4), (topic, 0), coordinator_epoch=5), 1)
    log = client.broker.replica_manager.partition(topic[0], 0).log
    assert (log.offsets.last_stable_offset, log.log_end_offset) == (2, 2)
    late = markers(producer, (topic, 0), coordinator_epoch=coordinator_epoch)
    (marker,) = client.call(late, 1).markers
    assert marker.topics[0].partitions[0].error_code == refusal
    assert log.log_end_offset == 2
