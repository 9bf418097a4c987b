"""Short forms of the requests about streams groups, and the members of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord
from embedlog.topic_names import OFFSETS_TOPIC
from tests.golden.members import PARTITION_COUNT
from tests.golden.requests import fetch
from tests.golden.run import Run
from wire.records.batch import iter_batches
from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.schemas.streams_group_describe import StreamsGroupDescribeRequest
from wire.schemas.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

BEAT, DESCRIBE = 1, 1
TIMEOUT_MS = 30_000
FETCH = 12
SETTLE_MS = 300
GROUP_RESOURCE = 32
FORMAT = RecordFormat(GROUP_RECORD_TYPES)

Tasks = Mapping[str, Sequence[int]]
MISSING_INTERNAL = 3
ENTRY_BEATS_MAX = 30


def internal(name: str, partitions: int = 0, replicas: int = 1, **configs: str) -> TopicInfo:
    """An internal topic of a subtopology."""
    rows = [KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return TopicInfo(
        name=name, partitions=partitions, replication_factor=replicas, topic_configs=rows
    )


def part(
    name: str,
    *sources: str,
    changelogs: Sequence[TopicInfo] = (),
    sinks: Sequence[str] = (),
    repartition: Sequence[TopicInfo] = (),
    together: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    regex: Sequence[str] = (),
) -> Subtopology:
    """A subtopology; `together` are co-partition groups (sources, repartition sources)."""
    return Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=list(regex),
        state_changelog_topics=list(changelogs),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartition),
        copartition_groups=[
            CopartitionGroup(source_topics=list(one), repartition_source_topics=list(other))
            for one, other in together
        ],
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(parts))


def beat(
    group: str,
    member: str,
    epoch: int,
    *,
    owns: tuple[Tasks | None, Tasks | None, Tasks | None] | None = None,
    tags: Mapping[str, str] | None = None,
    endpoint: tuple[str, int] | None = None,
    offsets: Sequence[tuple[str, int, int]] | None = None,
    end_offsets: Sequence[tuple[str, int, int]] | None = None,
    **fields: Any,
) -> StreamsGroupHeartbeatRequest:
    """StreamsGroupHeartbeat; fields that are not given are sent as unchanged."""
    active, standby, warmup = (None, None, None) if owns is None else map(_tasks, owns)
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        client_tags=None
        if tags is None
        else [KeyValue(key=key, value=value) for key, value in tags.items()],
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        task_offsets=_offsets(offsets),
        task_end_offsets=_offsets(end_offsets),
        **fields,
    )


def first_beat(
    group: str, member: str, given: Topology | None, **fields: Any
) -> StreamsGroupHeartbeatRequest:
    """The heartbeat of a joining member, with all fields that it must send."""
    values: dict[str, Any] = {
        "owns": ({}, {}, {}),
        "rebalance_timeout_ms": TIMEOUT_MS,
        "process_id": member,
        "tags": {},
        "topology": given,
    }
    epoch = fields.pop("epoch", 0)
    return beat(group, member, epoch, **(values | fields))


def _tasks(tasks: Tasks | None) -> list[TaskIds] | None:
    if tasks is None:
        return None
    return [TaskIds(subtopology_id=name, partitions=list(p)) for name, p in tasks.items()]


def _offsets(rows: Sequence[tuple[str, int, int]] | None) -> list[TaskOffset] | None:
    if rows is None:
        return None
    return [TaskOffset(subtopology_id=n, partition=p, offset=o) for n, p, o in rows]


def describe_streams(
    *groups: str, operations: bool = False, with_description: bool = False
) -> StreamsGroupDescribeRequest:
    """StreamsGroupDescribe."""
    return StreamsGroupDescribeRequest(
        group_ids=list(groups),
        include_authorized_operations=operations,
        include_topology_description=with_description,
    )


def setting(group: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigs of one setting of a group."""
    row = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=[row]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def grown(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=5000)


class Streamers:
    """The members of a streams group, by ids of their own, with the tasks of their last answers."""

    def __init__(self, run: Run, group: str, given: Topology | None) -> None:
        self.run = run
        self.group = group
        self.topology = given
        self.epochs: dict[str, int] = {}
        self.tasks: dict[str, tuple[Tasks, Tasks, Tasks]] = {}

    def join(self, member: str, note: str = "", *, version: int = BEAT, **fields: Any) -> Any:
        """One step: a member joins."""
        given = fields.pop("topology", self.topology)
        request = first_beat(self.group, member, given, **fields)
        return self._send(member, request, note or f"{member} joins", version)

    def enter(self, member: str, **fields: Any) -> None:
        """Without a step: join, and wait for the internal topics."""
        request = first_beat(self.group, member, self.topology, **fields)
        answer = self._learn(member, self.run.setup(request, BEAT))
        for _ in range(ENTRY_BEATS_MAX):
            if all(row.status_code != MISSING_INTERNAL for row in answer.status or ()):
                return
            self.run.let_pass(SETTLE_MS)
            answer = self._learn(member, self.run.setup(self._owning(member), BEAT))
        raise AssertionError(f"{member}: {answer}")

    def beat(self, member: str, note: str = "", *, version: int = BEAT, **fields: Any) -> Any:
        """One step: a heartbeat with the latest epoch, or with the given one."""
        epoch = fields.pop("epoch", self.epochs.get(member, 0))
        request = beat(self.group, member, epoch, **fields)
        return self._send(member, request, note or f"{member} again", version)

    def own(self, member: str, note: str = "", **fields: Any) -> Any:
        """One step: a heartbeat that reports the tasks of the last answer."""
        request = self._owning(member, **fields)
        return self._send(member, request, note or f"{member} owns its tasks", BEAT)

    def settle(self, *members: str, rounds: int = 3) -> None:
        """Without steps: heartbeats that report the tasks of the last answer."""
        for _ in range(rounds):
            for member in members:
                self._learn(member, self.run.setup(self._owning(member), BEAT))

    def leave(self, member: str, note: str = "", *, epoch: int = -1, **fields: Any) -> Any:
        """One step: a member leaves."""
        request = beat(self.group, member, epoch, **fields)
        return self.run.send(request, BEAT, note or f"{member} leaves")

    def until_ready(self, member: str, *, keep: bool = True) -> Any:
        """One step: heartbeats until no internal topic is missing."""
        request = self._owning(member)

        def settled(answer: Any) -> bool:
            if answer.error_code == 0:
                request.member_epoch = answer.member_epoch
            codes = [row.status_code for row in answer.status or ()]
            return bool(answer.error_code) or MISSING_INTERNAL not in codes

        note = f"{member} until the internal topics exist"
        answer = self.run.until(settled, request, BEAT, note, keep=keep)
        return self._learn(member, answer)

    def show(self, note: str = "described", *, version: int = DESCRIBE) -> Any:
        """One step: the group in StreamsGroupDescribe."""
        return self.run.send(describe_streams(self.group), version, note)

    def _owning(self, member: str, **fields: Any) -> StreamsGroupHeartbeatRequest:
        owns = self.tasks.get(member, ({}, {}, {}))
        return beat(self.group, member, self.epochs[member], owns=owns, **fields)

    def _send(self, member: str, request: Any, note: str, version: int) -> Any:
        return self._learn(member, self.run.send(request, version, note))

    def _learn(self, member: str, answer: Any) -> Any:
        if answer is not None and answer.error_code == 0:
            self.epochs[member] = answer.member_epoch
            if answer.active_tasks is not None:
                lists = (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)
                active, standby, warmup = (
                    {row.subtopology_id: list(row.partitions) for row in rows} for rows in lists
                )
                self.tasks[member] = active, standby, warmup
        return answer


def records_of(run: Run, group: str, note: str) -> None:
    """One step: the records of a streams group in the order of its log.

    A real broker may join the records of several operations to one batch.
    """
    run.let_pass(SETTLE_MS)
    number = partition_of(group, PARTITION_COUNT)
    answer = run.setup(fetch((OFFSETS_TOPIC, bytes(16)), FETCH, partition=number), FETCH)
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
    name = type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key")
    value = None if record.value is None else run.normal(record.value)
    if value is not None and value.get("metadata_hash"):
        value["metadata_hash"] = "<hash>"
    return {"record": name, "member": getattr(record.key, "member_id", ""), "value": value}
