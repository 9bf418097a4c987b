"""StreamsGroupDescribe of one group."""

from __future__ import annotations

from embedlog.coordinator.group.streams import sticky_assignor
from embedlog.coordinator.group.streams.facts import NO_OFFSETS
from embedlog.coordinator.group.streams.tasks import NO_TASKS, Tasks
from wire.schemas.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.coordinator.group.streams import topology as topologies
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.group.streams.streams_group import StreamsGroup
    from embedlog.coordinator.group.streams.tasks import Numbers


def described(group: StreamsGroup) -> DescribedGroup:
    """Describe a group, its topology and its members, in the order of joining."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        topology=_topology(group),
        members=[_member(group, member) for member in group.members.values()],
        assignor_name=sticky_assignor.NAME,
    )


def _topology(group: StreamsGroup) -> Topology | None:
    """Describe the topology with the decided partition counts if it is ready, else as given."""
    configured, topology = group.configured, group.topology
    if topology is None:
        return None
    rows = None
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        rows = [
            _subtopology(
                name,
                part.sources,
                part.repartition_sinks,
                part.repartition_sources.values(),
                part.changelogs.values(),
            )
            for name, part in configured.subtopologies.items()
        ]
    if rows is None:
        rows = [
            _subtopology(
                name,
                each.sources,
                each.repartition_sinks,
                each.repartition_sources,
                each.changelogs,
            )
            for name, each in sorted(topology.by_id().items())
        ]
    return Topology(epoch=topology.epoch, subtopologies=rows)


def _subtopology(
    subtopology_id: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    repartition_sources: Iterable[topologies.InternalTopic],
    changelogs: Iterable[topologies.InternalTopic],
) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(sources),
        repartition_sink_topics=sorted(sinks),
        repartition_source_topics=_topics(repartition_sources),
        state_changelog_topics=_topics(changelogs),
    )


def _topics(topics: Iterable[topologies.InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partition_count,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topic.configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.endpoint
    reported = group.task_offsets.get(member.member_id, NO_OFFSETS)
    assigned = member.assigned
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[
            KeyValue(key=key, value=value) for key, value in sorted(member.client_tags.items())
        ],
        task_offsets=_offsets(reported.offsets),
        task_end_offsets=_offsets(reported.end_offsets),
        assignment=_assignment(Tasks(assigned.active_numbers(), assigned.standby, assigned.warmup)),
        target_assignment=_assignment(group.target.get(member.member_id, NO_TASKS)),
    )


def _offsets(offsets: Mapping[tuple[str, int], int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=name, partition=number, offset=offset)
        for (name, number), offset in sorted(offsets.items())
    ]


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(
        active_tasks=_rows(tasks.active),
        standby_tasks=_rows(tasks.standby),
        warmup_tasks=_rows(tasks.warmup),
    )


def _rows(tasks: Numbers) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in sorted(tasks.items())
    ]
