"""One member's update by a heartbeat, and all its consequences.

    1. the member changed                    -> its metadata (type 19)
    2. the group has no topology yet         -> the topology (type 23)
    3. members, topics, topology or settings
       of the assignment changed             -> the group epoch rises (type 17)
    4. group epoch > target epoch            -> a new target assignment (types 21, 20), after the
                                                initial delay, and at most once per
                                                `streams.assignment.interval.ms`
    5. the member is not at its target       -> one step towards it (type 22)

See `member_records` for the types. Nothing that is stored is changed here: each step is computed as
if the earlier records were already applied.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.assignment_interval import may_assign
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.streams import (
    member_records,
    request_checks,
    status,
    topology_records,
)
from embedlog.coordinator.group.streams.configured_topology import ConfiguredTopology, configure
from embedlog.coordinator.group.streams.facts import NO_EPOCH
from embedlog.coordinator.group.streams.initial_delay import INTERVAL
from embedlog.coordinator.group.streams.reconciliation import TaskReconciliation
from embedlog.coordinator.group.streams.target_assignment import (
    RACK_TAGS,
    STANDBY_COUNT,
    make_target_assignment,
    members_after,
)
from embedlog.coordinator.group.streams.tasks import NO_TASKS, Tasks, owned_tasks
from embedlog.logger import Logger

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.streams.initial_delay import InitialDelay
    from embedlog.coordinator.group.streams.member import StreamsMember
    from embedlog.coordinator.group.streams.streams_group import StreamsGroup
    from embedlog.coordinator.group.streams.topology import Topology
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext
    from wire.schemas.streams_group_heartbeat import Status, StreamsGroupHeartbeatRequest


class MemberUpdate:
    """One member's update; it adds to `records`.

    `before` is the present member (a new member has epoch 0), `after` the member that the request
    describes.
    """

    def __init__(
        self,
        context: ShardContext,
        group: StreamsGroup,
        before: StreamsMember,
        after: StreamsMember,
        records: list[CoordinatorRecord],
    ) -> None:
        self._context = context
        self._group = group
        self._before = before
        self._after = after
        self._records = records
        self._metadata = context.metadata()
        self._configs = assignment_configs(context, group.group_id)
        self._hash = group.metadata_hash
        """The hash of the topology's topics after this update."""
        self.statuses: list[Status] = []
        """What the answer tells the application about its group."""

    def run(self, request: StreamsGroupHeartbeatRequest, delay: InitialDelay) -> StreamsMember:
        """Add the records; return the member after them.

        Raises:
            InvalidRequest: the topology is not the group's, or an owned task does not exist.
            StreamsInvalidTopology: the topology is invalid.
            FencedMemberEpoch: the member must join again.
        """
        group, member = self._group, self._after
        bump = False
        if member != self._before:
            self._records.append(member_records.member_metadata(group.group_id, member))
            # A static member that comes back unchanged needs no assignment.
            bump = request.instance_id is None or _is_other(self._before, member)
        topology = self._topology(request)
        self._note_stale()
        group_epoch = self._next_group_epoch(self._configured(topology), request, bump=bump)
        if group.is_empty():
            delay.begin(group.group_id)
        target_epoch, target = self._target(group_epoch, delay)
        stepped = member
        if not member.is_reconciled_to(target_epoch):
            request_checks.check_owned_once(request)
            stepped = TaskReconciliation(
                target_epoch=target_epoch,
                target=target,
                owned=owned_tasks(request),
                holders=group.holders,
            ).step(member)
        if stepped != member:
            self._records.append(member_records.current_assignment(group.group_id, stepped))
        return stepped

    def _topology(self, request: StreamsGroupHeartbeatRequest) -> Topology:
        """Return the group's topology; the first member gives it."""
        group = self._group
        if request.topology is None:
            if group.topology is None:
                raise errors.UnknownServerError()  # as Kafka answers, without a message
            return group.topology
        given = topology_records.read_topology(request.topology)
        if given.epoch < 0:
            raise errors.UnknownServerError()  # as Kafka answers, without a message
        if group.topology is None:
            self._records.append(topology_records.topology_record(group.group_id, given))
            return given
        if given.epoch < group.topology.epoch:
            return group.topology
        if not given.is_same_as(group.topology):
            raise errors.InvalidRequest("Topology updates are not supported yet.")
        return group.topology

    def _note_stale(self) -> None:
        present, own = self._group.topology, self._after.topology_epoch
        if present is not None and own < present.epoch:
            text = f"The member's topology epoch {own} is behind the group's topology epoch"
            self._tell(status.STALE_TOPOLOGY, f"{text} {present.epoch}.")

    def _configured(self, topology: Topology) -> ConfiguredTopology:
        """Return the topology with partition counts, and note it for later heartbeats."""
        group = self._group
        if (
            group.configured is None
            or group.topology is None
            or group.metadata_seen is not self._metadata
        ):
            hashed = metadata_hash(topology.required_topics(), self._metadata)
            if group.configured is None or group.topology is None or hashed != group.metadata_hash:
                group.configured = configure(topology, self._metadata)
            self._hash = hashed
            if hashed == group.metadata_hash and group.topology is not None:
                group.metadata_seen = self._metadata
        return group.configured

    def _next_group_epoch(
        self,
        configured: ConfiguredTopology,
        request: StreamsGroupHeartbeatRequest,
        *,
        bump: bool,
    ) -> int:
        group = self._group
        validated = NO_EPOCH
        if configured.is_ready:
            validated = configured.topology.epoch
            for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
                request_checks.check_owned(configured, tasks)
        if not (
            bump
            or self._hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or self._configs != group.assignment_configs
        ):
            return group.group_epoch
        facts = group.facts().replace(
            epoch=group.group_epoch + 1,
            metadata_hash=self._hash,
            validated_topology_epoch=validated,
            assignment_configs=self._configs,
        )
        _log.info("streams group %s rebalances: its epoch is %d", group.group_id, facts.epoch)
        self._records.append(member_records.group_facts(group.group_id, facts))
        return facts.epoch

    def _target(self, group_epoch: int, delay: InitialDelay) -> tuple[int, Tasks]:
        group, context = self._group, self._context
        if delay.is_active(group.group_id):
            self._tell(
                status.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured initial rebalance delay.",
            )
            return group.target_epoch, NO_TASKS
        if group_epoch <= group.target_epoch:
            return group.target_epoch, group.target_of(self._after)
        if not may_assign(group, context, INTERVAL):
            self._tell(
                status.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured assignment interval.",
            )
            return group.target_epoch, group.target_of(self._after)
        assert group.configured is not None, group.group_id
        made = make_target_assignment(
            group,
            members_after(group, self._after),
            group.configured,
            configs=dict(self._configs),
            epoch=group_epoch,
            now_ms=context.wall_ms(),
        )
        _log.info("streams group %s: epoch %d is assigned", group.group_id, made.epoch)
        self._records.extend(made.records)
        return made.epoch, made.members[self._after.member_id]

    def note_end(self, version: int) -> None:
        """Add the statuses that come last in the answer of that version."""
        group = self._group
        problem = None if group.configured is None else group.configured.problem
        if problem is not None:
            self._tell(problem.code, problem.text)
        if group.shutdown_by is not None:
            self._tell(
                status.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_by} encountered a fatal error and requested"
                " a shutdown for the entire application.",
            )
        tags = dict(self._configs).get(RACK_TAGS, "").strip()
        if tags and version >= _FIRST_WITH_TAG_STATUS:
            wanted = [tag.strip() for tag in tags.split(",")]
            missing = [tag for tag in wanted if tag not in self._after.client_tags]
            if missing:
                self._tell(
                    status.MISSING_CLIENT_TAGS,
                    "Missing required client tags for rack-aware standby assignment:"
                    f" [{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your"
                    " Streams config.",
                )

    def _tell(self, code: int, text: str) -> None:
        self.statuses.append(status.row(code, text))


_FIRST_WITH_TAG_STATUS = 1


def assignment_configs(context: ShardContext, group_id: str) -> tuple[tuple[str, str], ...]:
    """Return the settings of the group's next assignment, in the order of their names."""
    count = context.group_config(group_id, "streams.num.standby.replicas")
    tags = context.group_config(group_id, "streams.rack.aware.assignment.tags")
    assert isinstance(tags, tuple), tags
    configs = [(STANDBY_COUNT, str(count))]
    if tags:
        configs.append((RACK_TAGS, ",".join(map(str, tags))))
    return tuple(configs)


def _is_other(before: StreamsMember, after: StreamsMember) -> bool:
    """Return whether a static member changed in a way that may change the assignment."""
    return (
        before.topology_epoch != after.topology_epoch
        or before.rack_id != after.rack_id
        or before.client_tags != after.client_tags
        or before.process_id != after.process_id
    )
