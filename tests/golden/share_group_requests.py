"""Short forms of the requests about share groups, and the members of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord
from embedlog.topic_names import OFFSETS_TOPIC
from tests.golden.group_requests import find
from tests.golden.members import PARTITION_COUNT
from tests.golden.requests import fetch
from tests.golden.run import Run
from wire.records.batch import iter_batches
from wire.schemas.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from wire.schemas.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from wire.schemas.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from wire.schemas.share_group_describe import ShareGroupDescribeRequest
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

WARM_ID = bytes([*bytes(15), 1])
WARM_KEYS = 400
NOT_YET = (14, 15, 16)
FETCH = 12
SETTLE_MS = 300
FORMAT = RecordFormat(GROUP_RECORD_TYPES)
BEAT, DESCRIBE, OFFSETS, ALTER, DELETE = 1, 1, 1, 0, 0

Wanted = tuple[str, Sequence[int]]


def beat(
    group: str,
    member: str,
    epoch: int,
    topics: Sequence[str] | None = None,
    *,
    rack: str | None = None,
) -> ShareGroupHeartbeatRequest:
    """ShareGroupHeartbeat; fields that are not given are sent as unchanged."""
    return ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rack_id=rack,
        subscribed_topic_names=None if topics is None else list(topics),
    )


def describe_share(*groups: str, operations: bool = False) -> ShareGroupDescribeRequest:
    """ShareGroupDescribe."""
    return ShareGroupDescribeRequest(
        group_ids=list(groups), include_authorized_operations=operations
    )


def offsets_of(group: str, *wanted: Wanted) -> DescribeShareGroupOffsetsRequestGroup:
    """One of several groups of a DescribeShareGroupOffsets."""
    topics = [
        DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(numbers))
        for name, numbers in wanted
    ]
    return DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)


def show_offsets(
    group: str, *wanted: Wanted, everything: bool = False
) -> DescribeShareGroupOffsetsRequest:
    """DescribeShareGroupOffsets of one group; `everything` sends null for the topics."""
    row = offsets_of(group, *wanted)
    if everything:
        row.topics = None
    return DescribeShareGroupOffsetsRequest(groups=[row])


def alter(group: str, *wanted: tuple[str, Mapping[int, int]]) -> AlterShareGroupOffsetsRequest:
    """AlterShareGroupOffsets: (topic, {partition: start offset})."""
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
                for number, start in starts.items()
            ],
        )
        for name, starts in wanted
    ]
    return AlterShareGroupOffsetsRequest(group_id=group, topics=topics)


def forget(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    """DeleteShareGroupOffsets."""
    rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return DeleteShareGroupOffsetsRequest(group_id=group, topics=rows)


class Sharers:
    """The members of a share group, by ids of their own."""

    def __init__(self, run: Run, group: str) -> None:
        self.run = run
        self.group = group
        self.epochs: dict[str, int] = {}

    def join(self, member: str, *topics: str, note: str = "", **fields: Any) -> Any:
        """One step: a member joins."""
        request = beat(self.group, member, 0, topics, **fields)
        return self._send(member, request, note or f"{member} joins")

    def beat(self, member: str, note: str = "", **fields: Any) -> Any:
        """One step: a heartbeat with the latest epoch, or with the given one."""
        epoch = fields.pop("epoch", self.epochs.get(member, 0))
        request = beat(self.group, member, epoch, **fields)
        return self._send(member, request, note or f"{member} again")

    def leave(self, member: str, note: str = "") -> Any:
        """One step: a member leaves."""
        return self.run.send(beat(self.group, member, -1), BEAT, note or f"{member} leaves")

    def until_assigned(self, member: str, count: int = 1, *, keep: bool = True) -> Any:
        """One step: heartbeats until one brings at least `count` partitions."""
        request = beat(self.group, member, self.epochs[member])

        def settled(answer: Any) -> bool:
            if answer.error_code == 0:
                request.member_epoch = answer.member_epoch
            return bool(answer.error_code) or size(answer) >= count

        note = f"{member} until it is assigned {count} partitions"
        answer = self.run.until(settled, request, BEAT, note, keep=keep)
        return self._learn(member, answer)

    def enter(self, member: str, *topics: str, count: int = 1) -> None:
        """Without a step: join, and beat until `count` partitions are assigned."""
        answer = self._learn(member, self.run.setup(beat(self.group, member, 0, topics), BEAT))
        if size(answer) < count:
            self.until_assigned(member, count, keep=False)

    def show(self, note: str = "described") -> Any:
        """One step: the group in ShareGroupDescribe."""
        return self.run.send(describe_share(self.group), DESCRIBE, note)

    def _send(self, member: str, request: Any, note: str) -> Any:
        return self._learn(member, self.run.send(request, BEAT, note))

    def _learn(self, member: str, answer: Any) -> Any:
        if answer is not None and answer.error_code == 0:
            self.epochs[member] = answer.member_epoch
        return answer


def warm_up_state(run: Run) -> None:
    """Wait until share partitions have coordinators: the first request creates their topic.

    A real broker loads the partitions of the topic later, so each of them gets a request.
    """
    keys = ["warm:AAAAAAAAAAAAAAAAAAAAAQ:0"]
    run.until(
        lambda answer: answer.coordinators[0].error_code == 0,
        find(*keys, key_type=2),
        6,
        keep=False,
    )
    if not run.target.is_patient:
        return
    numbers = [PartitionData(partition=number) for number in range(WARM_KEYS)]
    request = ReadShareGroupStateSummaryRequest(
        group_id="warm", topics=[ReadStateSummaryData(topic_id=WARM_ID, partitions=numbers)]
    )
    run.until(
        lambda answer: not any(
            row.error_code in NOT_YET for topic in answer.results for row in topic.partitions
        ),
        request, 1, keep=False,
    )  # fmt: skip


def records_of(run: Run, group: str, note: str) -> None:
    """One step: the records of a share group in the order of its log.

    A real broker may join the records of several operations to one batch.
    """
    run.let_pass(SETTLE_MS)
    number = partition_of(group, PARTITION_COUNT)
    where = OFFSETS_TOPIC, bytes(16)
    answer = run.setup(fetch(where, FETCH, partition=number), FETCH)
    ((row,),) = (list(topic.partitions) for topic in answer.responses)
    kept = []
    for batch in iter_batches(bytes(row.records or b"")):
        decoded = [FORMAT.decode(each.key, each.value) for each in batch.records()]
        kept += [
            _plain(run, each)
            for each in decoded
            if each is not None and getattr(each.key, "group_id", "") == group
        ]
    run.keep(note, kept)


def _plain(run: Run, record: CoordinatorRecord) -> dict[str, Any]:
    name = type(record.key).__name__.removeprefix("ShareGroup").removesuffix("Key")
    value = None if record.value is None else run.normal(record.value)
    if value is not None and value.get("metadata_hash"):
        value["metadata_hash"] = "<hash>"
    return {"record": name, "member": getattr(record.key, "member_id", ""), "value": value}


def size(answer: Any) -> int:
    """Return the number of partitions in a heartbeat's answer; 0 without an assignment."""
    if answer.assignment is None:
        return 0
    return sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)
