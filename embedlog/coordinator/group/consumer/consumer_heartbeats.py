"""ConsumerGroupHeartbeat: joining, staying in and leaving a consumer group (KIP-848)."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import uuid_to_text
from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer import member_records, request_checks
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ConsumerMember, Owned
from embedlog.coordinator.group.consumer.member_timers import REBALANCE
from embedlog.coordinator.group.consumer.update import MemberUpdate
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.logger import Logger
from wire.schemas.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.consumer.membership import Membership
    from embedlog.coordinator.group.consumer.migration import Migration
    from embedlog.coordinator.group.consumer.regex_matching import RegexMatching
    from embedlog.coordinator.group.group import ClientIdentity

    HeartbeatResult = Result[ConsumerGroupHeartbeatResponse]


class ConsumerHeartbeats:
    """Answers the heartbeats of one shard's members. Requires: the shard's lock."""

    def __init__(
        self, membership: Membership, migration: Migration, regexes: RegexMatching
    ) -> None:
        self._membership = membership
        self._context = membership.context
        self._migration = migration
        self._regexes = regexes

    def heartbeat(
        self, client: ClientIdentity, request: ConsumerGroupHeartbeatRequest, version: int
    ) -> HeartbeatResult:
        """Let a member join, stay or leave. Raise a KafkaError if the state does not allow it."""
        known = assignors.configured(self._context.config.group_consumer_assignors)
        request_checks.check(request, version, known)
        if request.member_epoch < states.JOIN_EPOCH:
            return self._leave(request)
        return self._join_or_stay(client, request)

    def _join_or_stay(
        self, client: ClientIdentity, request: ConsumerGroupHeartbeatRequest
    ) -> HeartbeatResult:
        group_id = request.group_id
        records: list[CoordinatorRecord] = []
        is_join = request.member_epoch == states.JOIN_EPOCH
        group = self._group(group_id, is_join=is_join, records=records)
        self._membership.check_room(group, request.member_id, request.instance_id)
        member_id = request.member_id or uuid_to_text(self._context.random.uuid())
        owned = _owned(request)
        before = self._member(group, member_id, request, owned, records)
        after = _described(before, request, client)
        update = MemberUpdate(self._context, group, before, after, records)
        member = update.run(owned)
        self._follow_up(group_id, after, member)
        self._regexes.match_if_due(group, member, is_new=update.has_new_regex)
        is_full = is_join or (
            request.rebalance_timeout_ms != -1
            and request.topic_partitions is not None
            and (
                request.subscribed_topic_names is not None
                or request.subscribed_topic_regex is not None
            )
        )
        return Result(
            records,
            ConsumerGroupHeartbeatResponse(
                member_id=member_id,
                member_epoch=member.epoch,
                heartbeat_interval_ms=self._interval_ms(group_id),
                assignment=_assignment(member.assigned)
                if is_full or not _is_same(member.assigned, before.assigned)
                else None,
            ),
        )

    def _group(
        self, group_id: str, *, is_join: bool, records: list[CoordinatorRecord]
    ) -> ConsumerGroup:
        if not is_join:
            return self._membership.group(group_id, absent="Consumer group")
        found = self._membership.groups.get(group_id)
        if found is None:
            return ConsumerGroup(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        return self._migration.upgrade(found, records)

    def _member(
        self,
        group: ConsumerGroup,
        member_id: str,
        request: ConsumerGroupHeartbeatRequest,
        owned: Partitions | None,
        records: list[CoordinatorRecord],
    ) -> ConsumerMember:
        epoch = request.member_epoch
        if epoch == states.JOIN_EPOCH:
            if request.instance_id is not None:
                return self._membership.joining_static_member(
                    group, request.instance_id, member_id, records, is_classic=False
                )
            # A known member that joins again has missed the last answer: it keeps its epoch.
            if member_id not in group.members:
                _log.info("member %s joins consumer group %s", member_id, group.group_id)
            return group.members.get(member_id) or ConsumerMember(member_id)
        member = group.identified(member_id, request.instance_id)
        if epoch > member.epoch or epoch not in (member.epoch, member.previous_epoch):
            _log.warning(
                "group %s fences member %s: it is at epoch %d, not %d",
                group.group_id,
                member_id,
                member.epoch,
                epoch,
            )
        _check_epoch(member, epoch, owned)
        return member

    def _follow_up(self, group_id: str, before: ConsumerMember, member: ConsumerMember) -> None:
        membership = self._membership
        timeout_ms = membership.timers.session_timeout_ms(group_id)
        membership.timers.start_session(group_id, member.member_id, timeout_ms)
        if member is before:
            return
        if member.state == states.UNREVOKED_PARTITIONS:
            membership.timers.start_rebalance(group_id, member)
        else:
            membership.timers.cancel(REBALANCE, group_id, member.member_id)

    def _leave(self, request: ConsumerGroupHeartbeatRequest) -> HeartbeatResult:
        membership = self._membership
        group = membership.group(request.group_id)
        member = group.identified(request.member_id, request.instance_id)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=request.member_epoch
        )
        _log.info("member %s leaves consumer group %s", member.member_id, group.group_id)
        if request.member_epoch == states.LEAVE_EPOCH:
            return membership.fence(group, member, response)
        # The static member's partitions stay assigned until its session ends, for a successor with
        # its instance id.
        away = member.replace(epoch=states.LEAVE_STATIC_EPOCH, revoking=states.NO_PARTITIONS)
        return Result([member_records.current_assignment(group.group_id, away)], response)

    def _interval_ms(self, group_id: str) -> int:
        interval_ms = self._context.group_config(group_id, "consumer.heartbeat.interval.ms")
        assert isinstance(interval_ms, int), interval_ms
        return interval_ms


def _described(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: ClientIdentity
) -> ConsumerMember:
    """Return the member as the request describes it; properties that the request omits stay."""
    if (
        request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and (request.instance_id is None or request.instance_id == member.instance_id)
        and (request.rack_id is None or request.rack_id == member.rack_id)
        and member.client_id == client.client_id
        and member.client_host == client.client_host
        and member.classic is None
    ):
        return member
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    described = member.replace(
        instance_id=_or(request.instance_id, member.instance_id),
        rack_id=_or(request.rack_id, member.rack_id),
        client_id=client.client_id,
        client_host=client.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        server_assignor=_or(request.server_assignor, member.server_assignor),
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        classic=None,
    )
    return member if described == member else described


def _or(given: str | None, known: str | None) -> str | None:
    return known if given is None else given


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in request.topic_partitions}


def _check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    if epoch == member.epoch:
        return
    if epoch > member.epoch:
        compared = "greater"
    else:
        # The member may have missed the answer with its present epoch. If so, it
        # owns only partitions that are assigned to it.
        if epoch == member.previous_epoch and owned is not None and _within(owned, member.assigned):
            return
        compared = "smaller"
    raise errors.FencedMemberEpoch(
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by"
        f" the group coordinator ({member.epoch}). The member must abandon all its partitions and"
        " rejoin.",
    )


def _within(owned: Partitions, assigned: Owned) -> bool:
    return all(numbers <= assigned.get(topic, {}).keys() for topic, numbers in owned.items())


def _is_same(one: Owned, other: Owned) -> bool:
    """Return whether these are the same partitions, whatever their assignment epochs."""
    if one is other:
        return True
    return one.keys() == other.keys() and all(
        one[topic].keys() == other[topic].keys() for topic in one
    )


def _assignment(assigned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
            for topic_id, epochs in assigned.items()
        ]
    )
