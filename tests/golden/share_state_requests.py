"""Short forms of the requests about the stored state of share partitions, and of its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embedlog.common import uuid_to_text
from embedlog.coordinator.records import SHARE_RECORD_TYPES, RecordFormat
from tests.golden.requests import Topic, fetch, list_offsets
from tests.golden.run import Run
from wire.records import iter_batches
from wire.schemas import delete_share_group_state as deletes
from wire.schemas import initialize_share_group_state as initializes
from wire.schemas import read_share_group_state as reads
from wire.schemas import read_share_group_state_summary as summaries
from wire.schemas import write_share_group_state as writes
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

SHARE = 2
STATE_TOPIC = "__share_group_state"
EARLIEST = -2
RETRIED = (14, 15, 16)
Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4

_RECORDS = RecordFormat(SHARE_RECORD_TYPES)


def key_of(group: str, topic: Topic | bytes, partition: int = 0) -> str:
    """Return the key of FindCoordinator."""
    return f"{group}:{uuid_to_text(_id(topic))}:{partition}"


def look_up(*keys: str) -> FindCoordinatorRequest:
    """FindCoordinator of share partitions."""
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=SHARE)


def initialize(
    group: str,
    topic: Topic | bytes,
    *,
    partition: int = 0,
    state_epoch: int = 1,
    start: int = 0,
) -> initializes.InitializeShareGroupStateRequest:
    """Begin the state of one partition."""
    row = initializes.PartitionData(
        partition=partition, state_epoch=state_epoch, start_offset=start
    )
    return initializes.InitializeShareGroupStateRequest(
        group_id=group,
        topics=[initializes.InitializeStateData(topic_id=_id(topic), partitions=[row])],
    )


def read(
    group: str, topic: Topic | bytes, *, partition: int = 0, leader_epoch: int = 0
) -> reads.ReadShareGroupStateRequest:
    """Read the state of one partition."""
    row = reads.PartitionData(partition=partition, leader_epoch=leader_epoch)
    return reads.ReadShareGroupStateRequest(
        group_id=group, topics=[reads.ReadStateData(topic_id=_id(topic), partitions=[row])]
    )


def write(
    group: str,
    topic: Topic | bytes,
    *batches: Batch,
    partition: int = 0,
    state_epoch: int = 1,
    leader_epoch: int = 0,
    start: int = -1,
    complete: int = -1,
) -> writes.WriteShareGroupStateRequest:
    """Merge batches into the state of one partition."""
    row = writes.PartitionData(
        partition=partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=complete,
        state_batches=[
            writes.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    return writes.WriteShareGroupStateRequest(
        group_id=group, topics=[writes.WriteStateData(topic_id=_id(topic), partitions=[row])]
    )


def delete(
    group: str, topic: Topic | bytes, *, partition: int = 0
) -> deletes.DeleteShareGroupStateRequest:
    """Delete the state of one partition."""
    row = deletes.PartitionData(partition=partition)
    return deletes.DeleteShareGroupStateRequest(
        group_id=group, topics=[deletes.DeleteStateData(topic_id=_id(topic), partitions=[row])]
    )


def summary(
    group: str, topic: Topic | bytes, *, partition: int = 0, leader_epoch: int = 0
) -> summaries.ReadShareGroupStateSummaryRequest:
    """Read the state of one partition without its batches."""
    row = summaries.PartitionData(partition=partition, leader_epoch=leader_epoch)
    return summaries.ReadShareGroupStateSummaryRequest(
        group_id=group,
        topics=[summaries.ReadStateSummaryData(topic_id=_id(topic), partitions=[row])],
    )


def warm_up(run: Run, topic: Topic) -> None:
    """Create `__share_group_state` and return when its coordinator has loaded the only partition.

    Without a step. The topic needs a state that no step looks at.
    """
    group = run.group("warm")
    run.until(
        lambda answer: answer.coordinators[0].error_code == 0,
        look_up(key_of(group, topic)), 6, keep=False,
    )  # fmt: skip
    run.until(
        lambda answer: answer.results[0].partitions[0].error_code not in (*RETRIED, 3),
        initialize(group, topic), 0, keep=False,
    )  # fmt: skip


def stored(run: Run, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of these groups in partition 0 of `__share_group_state`, oldest first."""
    named = MetadataRequest(topics=[MetadataRequestTopic(name=STATE_TOPIC)])
    topic = STATE_TOPIC, run.setup(named, 12).topics[0].topic_id
    found: list[dict[str, Any]] = []
    start = run.setup(list_offsets(STATE_TOPIC, EARLIEST), 7).topics[0].partitions[0]
    offset = start.offset
    while True:
        row = run.setup(fetch(topic, 12, offset), 12).responses[0].partitions[0]
        assert row.error_code == 0, row
        for batch in iter_batches(memoryview(bytes(row.records or b""))):
            for record in batch.records():
                if record.offset < offset:
                    continue
                offset = record.offset + 1
                key, value = record.key, record.value
                assert key is not None
                decoded = _RECORDS.decode(bytes(key), None if value is None else bytes(value))
                if decoded is not None and decoded.key.group_id in groups:
                    found.append(_plain(run, decoded))
        if offset >= row.high_watermark:
            return found


def _plain(run: Run, record: Any) -> dict[str, Any]:
    """Return key and value as data; of the times only whether the state is the older one."""
    plain = {"record": type(record.key).__name__, **run.normal(record.key)}
    if record.value is None:
        return {**plain, "value": None}
    value = run.normal(record.value)
    if "create_timestamp" in value:
        value["is_older"] = record.value.create_timestamp < record.value.write_timestamp
        del value["create_timestamp"], value["write_timestamp"]
    return {**plain, "value": value}


def _id(topic: Topic | bytes) -> bytes:
    return topic if isinstance(topic, bytes) else topic[1]
