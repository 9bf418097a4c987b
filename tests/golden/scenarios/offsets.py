"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, InitProducerId, DescribeProducers, log dirs."""

from __future__ import annotations

from tests.golden.batches import BASE_TIMESTAMP, batch, record, simple
from tests.golden.requests import list_offsets, make_topic, produce
from tests.golden.run import Run, scenario
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.schemas.describe_producers import DescribeProducersRequest
from wire.schemas.describe_producers import TopicRequest as ProducersTopic
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def _timed(run: Run, topic: tuple[str, bytes]) -> None:
    """Offsets 0-2 at +0, +10, +5; then 3-4 at +20, +20; then 5 at +1."""
    first = (
        record(b"a")
        + record(b"b", offset_delta=1, timestamp_delta=10)
        + record(b"c", offset_delta=2, timestamp_delta=5)
    )
    run.setup(produce(topic, 9, batch(first, count=3, max_timestamp=BASE_TIMESTAMP + 10)), 9)
    second = record(b"d") + record(b"e", offset_delta=1)
    run.setup(produce(topic, 9, batch(second, count=2, base_timestamp=BASE_TIMESTAMP + 20)), 9)
    run.setup(produce(topic, 9, simple(b"f", base_timestamp=BASE_TIMESTAMP + 1)), 9)


@scenario
def list_offsets_versions(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    _timed(run, topic)
    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, -7):
            run.send(list_offsets(topic[0], timestamp), version, f"timestamp {timestamp}")
        for delta in (-1, 0, 1, 5, 6, 10, 11, 20, 21):
            request = list_offsets(topic[0], BASE_TIMESTAMP + delta)
            run.send(request, version, f"timestamp +{delta}")
        run.send(list_offsets(topic[0], -1, partition=1), version, "latest, empty")
        run.send(list_offsets(topic[0], -2, partition=1), version, "earliest, empty")
        run.send(list_offsets(topic[0], 0, partition=1), version, "time 0, empty")
        run.send(list_offsets(topic[0], -3, partition=1), version, "max timestamp, empty")
        run.send(list_offsets(topic[0], -1, partition=9), version, "no partition 9")
        run.send(list_offsets(run.topic("none"), -1), version, "unknown topic")
        run.send(list_offsets(topic[0], -1, -2), version, "the same partition twice")


@scenario
def list_offsets_arguments(run: Run) -> None:
    topic = make_topic(run)
    _timed(run, topic)
    for version in (2, 6, 11):
        for level in (0, 1, 2, -1):
            request = list_offsets(topic[0], -1, isolation_level=level)
            run.send(request, version, f"isolation level {level}")
        for replica in (-1, -2, 0, 1, 5):
            run.send(list_offsets(topic[0], -1, replica_id=replica), version, f"replica {replica}")
    for version in (4, 6, 11):
        for epoch in (-1, 0, 1, -2):
            request = list_offsets(topic[0], -1, epoch=epoch)
            run.send(request, version, f"current leader epoch {epoch}")
    run.send(ListOffsetsRequest(topics=[]), 6, "no topics")
    run.send(ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic[0])]), 6, "no partitions")
    run.send(list_offsets("a b", -1), 6, "illegal topic name")
    run.send(list_offsets("", -1), 6, "empty topic name")
    row = ListOffsetsPartition(partition_index=-1, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic[0], partitions=[row])])
    run.send(request, 6, "partition -1")


@scenario
def list_offsets_after_deletion(run: Run) -> None:
    topic = make_topic(run)
    _timed(run, topic)
    run.setup(_delete(topic[0], 4), 2)
    for version in (1, 7, 11):
        for timestamp in (-1, -2, -3, 0, BASE_TIMESTAMP + 1, BASE_TIMESTAMP + 20):
            run.send(list_offsets(topic[0], timestamp), version, f"{timestamp} after deletion")
    run.setup(_delete(topic[0], -1), 2)
    for timestamp in (-1, -2, -3, 0):
        run.send(list_offsets(topic[0], timestamp), 11, f"{timestamp}, all deleted")


@scenario
def list_offsets_without_timestamps(run: Run) -> None:
    topic = make_topic(run)
    run.setup(produce(topic, 9, simple(b"a", base_timestamp=-1)), 9)
    for timestamp in (-1, -2, -3, 0, 5):
        run.send(list_offsets(topic[0], timestamp), 11, f"{timestamp}, no timestamps")


def _epochs(
    topic: str, *epochs: int, partition: int = 0, current: int = -1, replica_id: int | None = None
) -> OffsetForLeaderEpochRequest:
    rows = [
        OffsetForLeaderPartition(
            partition=partition, leader_epoch=epoch, current_leader_epoch=current
        )
        for epoch in epochs
    ]
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=rows)]
    )
    if replica_id is not None:
        request.replica_id = replica_id
    return request


@scenario
def offset_for_leader_epoch(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    run.setup(produce(topic, 9, simple(b"a", b"b")), 9)
    for version in (2, 3, 4):
        for epoch in (0, 1, 5, -1, -2):
            run.send(_epochs(topic[0], epoch), version, f"epoch {epoch}")
            run.send(_epochs(topic[0], epoch, partition=1), version, f"epoch {epoch}, empty")
        for current in (0, 1, -2):
            run.send(_epochs(topic[0], 0, current=current), version, f"current epoch {current}")
        run.send(_epochs(topic[0], 0, partition=9), version, "no partition 9")
        run.send(_epochs(run.topic("none"), 0), version, "unknown topic")
    for replica in (-1, -2, 1, 5):
        run.send(_epochs(topic[0], 0, replica_id=replica), 4, f"replica {replica}")


def _delete(
    topic: str, offset: int, *, partition: int = 0, timeout_ms: int = 5000
) -> DeleteRecordsRequest:
    row = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=timeout_ms
    )


@scenario
def delete_records(run: Run) -> None:
    for version in (0, 1, 2):
        topic = make_topic(run, f"v{version}")
        compacted = make_topic(run, f"c{version}", cleanup_policy="compact")
        both = make_topic(run, f"b{version}", cleanup_policy="compact,delete")
        for where in (topic, compacted, both):
            data = simple(b"a", b"b", b"c", key=b"k")
            run.setup(produce(where, 9, data), 9)
        name = topic[0]
        run.send(_delete(name, 1), version, "up to 1")
        run.send(_delete(name, 0), version, "back to 0")
        run.send(_delete(name, 4), version, "beyond the end")
        run.send(_delete(name, -2), version, "offset -2")
        run.send(_delete(name, 2, timeout_ms=0), version, "timeout 0")
        run.send(_delete(name, 2, timeout_ms=-1), version, "timeout -1")
        run.send(_delete(name, -1), version, "up to the high watermark")
        run.send(_delete(name, 1, partition=4), version, "no partition 4")
        run.send(_delete(run.topic("none"), 1), version, "unknown topic")
        run.send(_delete("", 1), version, "empty topic name")
        run.send(_delete(compacted[0], 1), version, "compacted topic")
        run.send(_delete(both[0], 1), version, "compact,delete")
        run.send(DeleteRecordsRequest(topics=[], timeout_ms=100), version, "no topics")


@scenario
def init_producer_id(run: Run) -> None:
    warm = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)
    while run.setup(warm, 4).error_code != 0:
        continue  # the first block of ids comes from the controller
    for version in range(6):
        fresh = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)
        run.send(fresh, version, "a new id")
        run.send(fresh, version, "another id")
        none = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        run.send(none, version, "timeout -1 without a transaction")
        empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60000)
        run.send(empty, version, "empty transactional id")
    for version in (3, 4, 5):
        half = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000, producer_id=5
        )
        run.send(half, version, "producer id without epoch")
        known = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000, producer_id=5, producer_epoch=1
        )
        run.send(known, version, "id and epoch, no transactional id")


@scenario
def describe_producers(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    # Kafka has to fetch a block of ids first, and says so.
    producer = run.until(
        lambda answer: answer.error_code == 0,
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4, keep=False,
    ).producer_id  # fmt: skip

    def ask(name: str, *partitions: int) -> DescribeProducersRequest:
        row = ProducersTopic(name=name, partition_indexes=list(partitions))
        return DescribeProducersRequest(topics=[row])

    run.send(ask(topic[0], 0), 0, "none yet")
    data = simple(b"a", b"b", producer_id=producer, producer_epoch=0, base_sequence=0)
    run.setup(produce(topic, 9, data), 9)
    run.send(ask(topic[0], 0, 1), 0, "one producer")
    data = simple(b"c", producer_id=producer, producer_epoch=1, base_sequence=0)
    run.setup(produce(topic, 9, data), 9)
    run.send(ask(topic[0], 0), 0, "with a new epoch")
    run.send(ask(topic[0], 9), 0, "no partition 9")
    run.send(ask(run.topic("none"), 0), 0, "unknown topic")
    run.send(ask("a b", 0), 0, "illegal topic name")
    run.send(ask(topic[0]), 0, "no partitions")
    run.send(DescribeProducersRequest(topics=[]), 0, "no topics")


@scenario
def describe_log_dirs(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    run.setup(produce(topic, 9, simple(b"a", b"b")), 9)

    def ask(name: str, *partitions: int) -> DescribeLogDirsRequest:
        row = DescribableLogDirTopic(topic=name, partitions=list(partitions))
        return DescribeLogDirsRequest(topics=[row])

    for version in range(1, 6):
        run.send(ask(topic[0], 0, 1), version, "two partitions")
        run.send(ask(topic[0], 1), version, "one partition")
        run.send(ask(topic[0], 9), version, "no partition 9")
        run.send(ask(run.topic("none"), 0), version, "unknown topic")
        run.send(DescribeLogDirsRequest(topics=[]), version, "no topics")
