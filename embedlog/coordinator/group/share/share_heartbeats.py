"""ShareGroupHeartbeat: joining, staying in and leaving a share group (KIP-932)."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.assignors import simple
from embedlog.coordinator.group.share.initialization import starts_of
from embedlog.coordinator.group.share.member import JOIN_EPOCH, LEAVE_EPOCH, ShareMember
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.group.share.update import MemberUpdate
from embedlog.coordinator.result import Result
from embedlog.logger import Logger
from wire.schemas.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.group import ClientIdentity
    from embedlog.coordinator.group.share.initialization import Initialization
    from embedlog.coordinator.group.share.membership import Membership
    from embedlog.coordinator.share.state_client import Place
    from embedlog.errors import KafkaError

    HeartbeatResult = Result[ShareGroupHeartbeatResponse]


class ShareHeartbeats:
    """Answers the heartbeats of one shard's members. Requires: the shard's lock."""

    def __init__(self, membership: Membership, initialization: Initialization) -> None:
        self._membership = membership
        self._context = membership.context
        self._initialization = initialization

    def heartbeat(
        self, client: ClientIdentity, request: ShareGroupHeartbeatRequest
    ) -> HeartbeatResult:
        """Let a member join, stay or leave. Raise a KafkaError if the state does not allow it.

        Requires: `request_checks.check` has passed.
        """
        simple.check_configured(self._context.config.group_share_assignors)
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        return self._join_or_stay(client, request)

    def _join_or_stay(
        self, client: ClientIdentity, request: ShareGroupHeartbeatRequest
    ) -> HeartbeatResult:
        group_id, member_id = request.group_id, request.member_id
        is_join = request.member_epoch == JOIN_EPOCH
        if is_join and group_id not in self._membership.groups:
            group = ShareGroup(group_id)
        else:
            group = self._membership.group(group_id, absent="Share group")
        self._membership.check_room(group, member_id)
        if is_join:
            # A known member that joins again has missed the last answer: it keeps its epoch.
            before = group.members.get(member_id) or ShareMember(member_id)
            if member_id not in group.members:
                _log.info("member %s joins share group %s", member_id, group_id)
        else:
            before = group.member(member_id)
            _check_epoch(group, before, request.member_epoch)
        update = MemberUpdate(self._context, group, before, _described(before, request, client))
        member = update.run(self._initialization)
        self._membership.start_session(group_id, member_id)
        is_full = is_join or request.subscribed_topic_names is not None
        response = ShareGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(group_id, member),
            assignment=_assignment(member.assigned)
            if is_full or member.assigned != before.assigned
            else None,
        )
        result = Result(update.records, response)
        if update.begun:
            starts = starts_of(update.begun, group.state_topics)
            result.on_append = lambda error: self._begin(group_id, update, starts, error)
        return result

    def _begin(
        self,
        group_id: str,
        update: MemberUpdate,
        starts: dict[Place, int],
        error: KafkaError | None,
    ) -> None:
        if error is not None:
            return
        epoch = update.group_epoch
        self._initialization.note_begun(group_id, update.begun)
        names = {topic_id: name for topic_id, (name, _) in update.begun.items()}

        def begin() -> None:
            self._initialization.begin(group_id, epoch, starts, names)

        self._context.defer(begin)

    def _leave(self, request: ShareGroupHeartbeatRequest) -> HeartbeatResult:
        group = self._membership.group(request.group_id)
        member = group.member(request.member_id)
        _log.info("member %s leaves share group %s", member.member_id, group.group_id)
        result = self._membership.remove(group, [member])
        result.response = ShareGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=LEAVE_EPOCH
        )
        return result

    def _interval_ms(self, group_id: str, member: ShareMember) -> int:
        """Return the time to the member's next heartbeat. The first partitions of a member come
        with a heartbeat after their initialization.
        """
        interval_ms = self._context.group_config(group_id, "share.heartbeat.interval.ms")
        assert isinstance(interval_ms, int), interval_ms
        first_ms: int = self._context.config.embedlog_share_first_heartbeat_ms
        if first_ms and not member.assigned:
            known = self._context.metadata().topics_by_name
            if any(name in known for name in member.topics):
                return min(first_ms, interval_ms)
        return interval_ms


def _check_epoch(group: ShareGroup, member: ShareMember, epoch: int) -> None:
    # The member may have missed the answer with its present epoch.
    if epoch in (member.epoch, member.previous_epoch):
        return
    _log.warning(
        "share group %s fences member %s: it is at epoch %d, not %d",
        group.group_id,
        member.member_id,
        member.epoch,
        epoch,
    )
    if epoch > member.epoch:
        what = f"a greater member epoch ({epoch}) than the one known by the group coordinator"
        what += f" ({member.epoch})."
    else:
        what = f"a smaller member epoch ({epoch}) than the one known by the group coordinator"
        what += f" ({member.epoch}), and it does not match the previous member epoch"
        what += f" ({member.previous_epoch})."
    raise errors.FencedMemberEpoch(
        f"The share group member has {what} The member must abandon all its partitions and rejoin."
    )


def _described(
    member: ShareMember, request: ShareGroupHeartbeatRequest, client: ClientIdentity
) -> ShareMember:
    """Return the member as the request describes it; properties that the request omits stay."""
    names = request.subscribed_topic_names
    if (
        names is None
        and request.rack_id in (None, member.rack_id)
        and member.client_id == client.client_id
        and member.client_host == client.client_host
    ):
        return member
    described = member.replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        topics=member.topics if names is None else frozenset(names),
    )
    return member if described == member else described


def _assignment(assigned: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in assigned.items()
        ]
    )
