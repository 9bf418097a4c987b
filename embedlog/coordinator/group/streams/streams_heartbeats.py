"""StreamsGroupHeartbeat: joining, staying in and leaving a streams group (KIP-1071)."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams import member_records, request_checks, sticky_assignor
from embedlog.coordinator.group.streams.endpoints import partitions_by_endpoint
from embedlog.coordinator.group.streams.facts import NO_EPOCH, NO_OFFSETS, TaskOffsets
from embedlog.coordinator.group.streams.initial_delay import InitialDelay
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.member_timers import REBALANCE
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.group.streams.tasks import HeldTasks, Numbers, owned_tasks
from embedlog.coordinator.group.streams.update import MemberUpdate
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.logger import Logger
from wire.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
)

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.coordinator.group.group import ClientIdentity
    from embedlog.coordinator.group.streams.membership import Membership
    from embedlog.coordinator.group.streams.topology import InternalTopic


class Answer(Value):
    """The answer, and the work that it leaves to the broker."""

    response: StreamsGroupHeartbeatResponse
    missing: Sequence[InternalTopic] = ()
    """Internal topics to create."""
    topology_epoch: int = NO_EPOCH
    is_described: bool = True
    """False if the plugin has no description of that topology, and has not refused it."""


class StreamsHeartbeats:
    """Answers the heartbeats of one shard's members. Requires: the shard's lock."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._context = membership.context
        self._delay = InitialDelay(membership.context, membership.groups)

    def heartbeat(
        self, client: ClientIdentity, request: StreamsGroupHeartbeatRequest, version: int
    ) -> Result[Answer]:
        """Let a member join, stay or leave. Raise a KafkaError if the state does not allow it.

        Requires: `request_checks.check` has passed.
        """
        sticky_assignor.check_configured(self._context.config.group_streams_assignors)
        if request.member_epoch < states.JOIN_EPOCH:
            return self._leave(request)
        return self._join_or_stay(client, request, version)

    def _join_or_stay(
        self, client: ClientIdentity, request: StreamsGroupHeartbeatRequest, version: int
    ) -> Result[Answer]:
        group_id, member_id = request.group_id, request.member_id
        records: list[CoordinatorRecord] = []
        if request.member_epoch == states.JOIN_EPOCH:
            group = self._membership.group_to_join(group_id, records)
            self._membership.check_room(group, member_id, request.instance_id)
        else:
            group = self._membership.group(group_id, absent="Streams group")
        replaced = _replaced(group, request)
        before = self._member(group, request, records)
        request_checks.check_repetitions(request)
        after = _described(before, request, client)
        update = MemberUpdate(self._context, group, before, after, records)
        member = update.run(request, self._delay)
        self._note_offsets(group, request)
        self._follow_up(group_id, after, member)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = member_id
        update.note_end(version)
        response = self._response(group, request, before, member)
        response.status = update.statuses
        _raise_endpoint_epoch(group, before, member)
        gone = {member_id, "" if replaced is None else replaced.member_id}
        others = [each for each in group.members.values() if each.member_id not in gone]
        self._add_endpoints(response, group, request, [*others, member])
        assert group.configured is not None, group_id
        epoch = group.configured.topology.epoch
        is_described = (
            epoch in (group.stored_description_epoch, group.failed_description_epoch)
            or after.topology_epoch < epoch
        )
        missing = group.configured.missing
        return Result(records, Answer(response, missing, epoch, is_described))

    def _member(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        records: list[CoordinatorRecord],
    ) -> StreamsMember:
        epoch, member_id = request.member_epoch, request.member_id
        if epoch == states.JOIN_EPOCH:
            if request.instance_id is not None:
                return self._membership.joining_static_member(
                    group, request.instance_id, member_id, records
                )
            # A known member that joins again has missed the last answer: it keeps its epoch.
            if member_id not in group.members:
                _log.info("member %s joins streams group %s", member_id, group.group_id)
            return group.members.get(member_id) or StreamsMember(member_id)
        member = group.identified(member_id, request.instance_id)
        _check_epoch(group, member, request)
        return member

    def _note_offsets(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
        """Note the offsets that the member reports; a list that it omits stays."""
        if request.task_offsets is None and request.task_end_offsets is None:
            return
        known = group.task_offsets.get(request.member_id, NO_OFFSETS)
        group.task_offsets[request.member_id] = TaskOffsets(
            known.offsets if request.task_offsets is None else _offsets(request.task_offsets),
            known.end_offsets
            if request.task_end_offsets is None
            else _offsets(request.task_end_offsets),
        )

    def _follow_up(self, group_id: str, before: StreamsMember, member: StreamsMember) -> None:
        timers = self._membership.timers
        timeout_ms = timers.session_timeout_ms(group_id)
        timers.start_session(group_id, member.member_id, timeout_ms)
        if member is before:
            return
        if member.state == states.UNREVOKED_TASKS:
            timers.start_rebalance(group_id, member)
        else:
            timers.cancel(REBALANCE, group_id, member.member_id)

    def _response(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        before: StreamsMember,
        member: StreamsMember,
    ) -> StreamsGroupHeartbeatResponse:
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._setting(group, "streams.heartbeat.interval.ms"),
            task_offset_interval_ms=self._setting(group, "streams.task.offset.interval.ms"),
            acceptable_recovery_lag=self._setting(group, "streams.acceptable.recovery.lag"),
        )
        is_join = request.member_epoch == states.JOIN_EPOCH
        if is_join or member.assigned != before.assigned:
            response.active_tasks = _rows(member.assigned.active_numbers())
            response.standby_tasks = _rows(member.assigned.standby)
            response.warmup_tasks = _rows(member.assigned.warmup)
        return response

    def _add_endpoints(
        self,
        response: StreamsGroupHeartbeatResponse,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        members: Sequence[StreamsMember],
    ) -> None:
        """Add the endpoints of all members if the member does not know the present ones."""
        assert group.configured is not None, group.group_id
        if group.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                members, group.configured, self._context.metadata()
            )
        if group.group_id in self._membership.groups:
            response.endpoint_information_epoch = group.endpoint_epoch

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> Result[Answer]:
        membership = self._membership
        group = membership.group(request.group_id)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = request.member_id
        member = group.identified(request.member_id, request.instance_id)
        _log.info("member %s leaves streams group %s", member.member_id, group.group_id)
        is_static_leave = (
            request.instance_id is not None and request.member_epoch == states.LEAVE_STATIC_EPOCH
        )
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch, status=[]
        )
        if is_static_leave:
            # The static member's tasks stay assigned until its session ends, for a successor with
            # its instance id.
            away = _away(member)
            record = member_records.current_assignment(group.group_id, away)
            return Result([record], Answer(response))
        removed = membership.remove(group, [member])
        return Result(removed.records, Answer(response))

    def _setting(self, group: StreamsGroup, name: str) -> int:
        value = self._context.group_config(group.group_id, name)
        assert isinstance(value, int), value
        return value


def _replaced(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsMember | None:
    """Return the member whose place another static member takes."""
    if request.instance_id is None:
        return None
    former = group.static_member(request.instance_id)
    return None if former is None or former.member_id == request.member_id else former


def _raise_endpoint_epoch(
    group: StreamsGroup, before: StreamsMember, member: StreamsMember
) -> None:
    """Note whether an endpoint changed, or the tasks behind one."""
    if before.endpoint != member.endpoint or (
        member.endpoint is not None and member.assigned != before.assigned
    ):
        group.endpoint_epoch += 1


def _away(member: StreamsMember) -> StreamsMember:
    """Return a static member that left for a while. Its tasks count as assigned long ago."""
    assigned = member.assigned
    reset = {name: dict.fromkeys(epochs, 0) for name, epochs in assigned.active.items()}
    return member.replace(
        epoch=states.LEAVE_STATIC_EPOCH,
        assigned=assigned.replace(active=reset),
        revoking=HeldTasks(),
    )


def _check_epoch(
    group: StreamsGroup, member: StreamsMember, request: StreamsGroupHeartbeatRequest
) -> None:
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    compared = "greater"
    if epoch < member.epoch:
        # The member may have missed the answer with its present epoch. If so, it owns only tasks
        # that are assigned to it.
        owned = owned_tasks(request)
        if epoch == member.previous_epoch and owned and member.assigned.includes(owned):
            return
        compared = "smaller"
    _log.warning(
        "streams group %s fences member %s: it is at epoch %d, not %d",
        group.group_id,
        member.member_id,
        member.epoch,
        epoch,
    )
    raise errors.FencedMemberEpoch(
        f"The streams group member has a {compared} member epoch ({epoch}) than the one known by"
        f" the group coordinator ({member.epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )


def _described(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: ClientIdentity
) -> StreamsMember:
    """Return the member as the request describes it; properties that the request omits stay,
    except that a joining member without endpoint has none.
    """
    given = request.user_endpoint
    endpoint = None if given is None else (given.host, given.port)
    if endpoint is None and request.member_epoch != states.JOIN_EPOCH:
        endpoint = member.endpoint
    tags = request.client_tags
    timeout_ms = request.rebalance_timeout_ms
    described = member.replace(
        instance_id=_or(request.instance_id, member.instance_id),
        rack_id=_or(request.rack_id, member.rack_id),
        client_id=client.client_id,
        client_host=client.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch
        if request.topology is None
        else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=endpoint,
        client_tags=member.client_tags if tags is None else {tag.key: tag.value for tag in tags},
    )
    return member if described == member else described


def _or(given: str | None, known: str | None) -> str | None:
    return known if given is None else given


def _offsets(rows: Sequence[TaskOffset]) -> Mapping[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for row in rows:
        task = row.subtopology_id, row.partition
        if task in found:
            raise errors.InvalidRequest(
                "Task offsets contain a duplicate entry for subtopology"
                f" {row.subtopology_id} and partition {row.partition}."
            )
        found[task] = row.offset
    return found


def _rows(tasks: Numbers) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in sorted(tasks.items())
    ]
