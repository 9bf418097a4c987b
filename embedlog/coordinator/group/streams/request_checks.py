"""Validation of a StreamsGroupHeartbeat, in Kafka's order, before any state is looked at."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import repeated
from embedlog.coordinator.group.streams.member import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from embedlog.topic_names import INTERNAL_TOPICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.coordinator.group.streams.configured_topology import ConfiguredTopology
    from embedlog.coordinator.group.streams.tasks import TaskIds
    from wire.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology

ALL_OR_NONE = "If one task-type is non-null, all must be non-null."


def check_topics(topology: Topology, is_legal: Callable[[str], bool]) -> None:
    """Raise StreamsInvalidTopology if an application may not use one of its topics.

    `is_legal` tells whether a topic may have that name.
    """
    names = [
        name
        for each in topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    ]
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise errors.StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is"
            " prohibited."
        )
    illegal = [name for name in names if not is_legal(name)]
    if illegal:
        raise errors.StreamsInvalidTopology(
            f"Topic names {','.join(illegal)} are not valid topic names."
        )


def check(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse a request that is invalid in any state.

    Raises:
        InvalidRequest: a field is missing, empty or out of place.
        StreamsInvalidTopology: the application gives a changelog a partition count.
    """
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")
    for field, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{field} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        raise _invalid(
            f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        )
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(tasks is None for tasks in lists) and any(tasks is not None for tasks in lists):
        raise _invalid(ALL_OR_NONE)
    if request.member_epoch != JOIN_EPOCH and topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for field, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise _invalid(f"{field} must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for each in request.topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions != 0:
                raise errors.StreamsInvalidTopology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it"
                    f" is set to {topic.partitions}."
                )


def check_repetitions(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise UnknownServerError, as Kafka does, if a name occurs twice where each has one meaning.

    These are subtopologies of a topology, and client tags.
    """
    lists = [[tag.key for tag in request.client_tags or ()]]
    if request.topology is not None:
        lists.append([each.subtopology_id for each in request.topology.subtopologies])
    for names in lists:
        if repeated(names):
            raise errors.UnknownServerError()


def check_owned_once(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise UnknownServerError, as Kafka does, if the owned tasks name a subtopology twice."""
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        if repeated(row.subtopology_id for row in tasks or ()):
            raise errors.UnknownServerError()


def check_owned(configured: ConfiguredTopology, tasks: Iterable[TaskIds] | None) -> None:
    """Raise InvalidRequest for a task that the topology does not have."""
    parts = configured.subtopologies or {}
    for row in tasks or ():
        part = parts.get(row.subtopology_id)
        if part is None:
            raise _invalid(f"Subtopology {row.subtopology_id} does not exist in the topology.")
        for number in row.partitions:
            if not 0 <= number < part.task_count:
                raise _invalid(
                    f"Task {number} for subtopology {row.subtopology_id} is invalid. Number of"
                    f" tasks for this subtopology: {part.task_count}"
                )


def _invalid(message: str) -> Exception:
    return errors.InvalidRequest(message)
