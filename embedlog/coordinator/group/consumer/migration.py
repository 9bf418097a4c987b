"""Migration of a group with its members, from classic to consumer and back (KIP-848).

    upgrade     a consumer member joins a classic group of consumers
    downgrade   the last consumer member goes, and classic ones remain

`group.consumer.migration.policy` allows both, one, or none. An upgrade only makes records, like
every change of a consumer group. A downgrade makes the classic group at once, like every change of
a classic group; if its records cannot be appended, the consumer group comes back.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.classic import records as classic_records
from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.classic_member import ClassicMember
from embedlog.coordinator.group.consumer import member_records, protocol_bytes
from embedlog.coordinator.group.consumer.consumer_group import PROTOCOL_TYPE, ConsumerGroup
from embedlog.coordinator.group.consumer.member import ClassicFacts, ConsumerMember
from embedlog.coordinator.group.consumer.membership import Membership, not_a_consumer_group
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.errors import KafkaError
from embedlog.logger import Logger
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from embedlog.coordinator.group.classic.classic_groups import ClassicGroups
    from embedlog.coordinator.group.group import Group

_log = Logger("group")

_UPGRADES = ("bidirectional", "upgrade")
_DOWNGRADES = ("bidirectional", "downgrade")
_DISABLED = "disabled"


class Migration:
    """Changes the type of one shard's groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership, classic: ClassicGroups) -> None:
        self._membership = membership
        self._context = membership.context
        self._classic = classic

    # Classic to consumer

    def upgrade(self, found: Group, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """Return the consumer group that replaces a classic group when a consumer member joins it.

        This adds the records of the change to `records`. The group exists once they are appended.

        Raises:
            GroupIdNotFound: the group cannot become a consumer group.
        """
        if not isinstance(found, ClassicGroup) or found.state == GroupState.DEAD:
            raise not_a_consumer_group(found.group_id)
        if found.is_empty():
            records += found.tombstones()
            return ConsumerGroup(found.group_id)
        config = self._context.config
        if config.group_consumer_migration_policy.lower() not in _UPGRADES:
            raise _cannot_upgrade(found, "online upgrade is disabled")
        if found.protocol_type != PROTOCOL_TYPE:
            raise _cannot_upgrade(found, "the group does not use the consumer embedded protocol")
        if len(found.members.by_id) > config.group_consumer_max_size:
            raise _cannot_upgrade(found, "the group size exceeds the consumer group maximum size")
        try:
            group = self._consumer_group(found)
        except KafkaError as error:
            raise _cannot_upgrade(found, "the embedded consumer protocol is malformed") from error
        for classic_member in found.members.by_id.values():
            # Refuse the parked requests: their members join again, into the new group.
            self._classic.rebalances.parked.fence(
                found,
                classic_member,
                ErrorCode.REBALANCE_IN_PROGRESS,
                member_id=classic_member.member_id,
            )
        _log.info("classic group %s becomes a consumer group", group.group_id)
        records += found.tombstones()
        records += _creation(group)
        for member in group.members.values():
            assert member.classic is not None, member
            self._membership.timers.start_session(
                group.group_id, member.member_id, member.classic.session_timeout_ms
            )
        return group

    def _consumer_group(self, classic: ClassicGroup) -> ConsumerGroup:
        """Make the group. Its members keep their partitions, which are also their target."""
        group = ConsumerGroup(classic.group_id)
        epoch = classic.generation_id
        group.group_epoch = group.target_epoch = epoch
        metadata = self._context.metadata()
        for member in classic.members.by_id.values():
            # Before the first generation no protocol is chosen.
            name = classic.protocol_name or member.protocols[0][0]
            subscription = protocol_bytes.subscription(member.metadata(name))
            assigned = protocol_bytes.assigned(member.assignment, metadata)
            group.target[member.member_id] = assigned
            group.put_member(
                ConsumerMember(
                    member.member_id,
                    instance_id=member.instance_id,
                    rack_id=subscription.rack_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    topics=frozenset(subscription.topics),
                    classic=ClassicFacts(member.session_timeout_ms, member.protocols),
                    epoch=epoch,
                    previous_epoch=epoch,
                    assigned={
                        topic_id: dict.fromkeys(numbers, epoch)
                        for topic_id, numbers in assigned.items()
                    },
                )
            )
        if classic.state == GroupState.STABLE:
            topics = group.subscriptions.topics_after()
            group.metadata_hash = metadata_hash(topics, metadata)
        # Not stable: the partitions of members that left have no owner. So set no metadata hash:
        # then the next heartbeat makes a new assignment, even if it comes from a static member and
        # changes nothing.
        return group

    # Consumer to classic

    def check_classic_members_allowed(self) -> None:
        if self._context.config.group_consumer_migration_policy.lower() == _DISABLED:
            raise errors.InconsistentGroupProtocol()

    def downgrade_leaving(self, group: ConsumerGroup, leaving: Sequence[str]) -> Result[Any] | None:
        """Turn the group, without the members `leaving`, into a classic group that rebalances.

        Return None if the group stays as it is.
        """
        rest = [member for name, member in group.members.items() if name not in leaving]
        if not rest or len(rest) == len(group.members) or not self._may_be_classic(rest):
            return None
        result = self._downgrade(group, rest, departed_id=leaving[0])
        self._classic.rebalances.prepare(
            self._classic_group(group.group_id), "the last consumer member left"
        )
        return result

    def downgrade_replacing(
        self, group: ConsumerGroup, former: ConsumerMember, successor: ConsumerMember
    ) -> Result[Any] | None:
        """Replace a group's last consumer member by a classic one and make the group classic.

        Nothing else changes, so the classic group keeps the generation. Return None if the group
        stays as it is.
        """
        if former.classic is not None:
            return None
        rest = [
            successor if name == former.member_id else member
            for name, member in group.members.items()
        ]
        return self._downgrade(group, rest) if self._may_be_classic(rest) else None

    def _may_be_classic(self, members: Sequence[ConsumerMember]) -> bool:
        config = self._context.config
        return (
            all(member.classic is not None for member in members)
            and config.group_consumer_migration_policy.lower() in _DOWNGRADES
            and len(members) <= config.group_max_size
        )

    def _downgrade(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        *,
        departed_id: str | None = None,
    ) -> Result[Any]:
        """Replace the consumer group by a classic group of `members`.

        `departed_id` is a member that left; a rebalance has yet to reassign its partitions.
        """
        classic = ClassicGroup(
            group.group_id,
            state=GroupState.STABLE,
            generation_id=group.group_epoch,
            protocol_type=PROTOCOL_TYPE,
            state_timestamp_ms=self._context.wall_ms(),
        )
        metadata = self._context.metadata()
        for member in members:
            facts = member.classic
            assert facts is not None, member
            classic.add(
                ClassicMember(
                    member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=facts.session_timeout_ms,
                    protocols=facts.protocols,
                    assignment=protocol_bytes.assignment_for(
                        group.target_of(member),
                        metadata,
                        subscription_metadata=facts.protocols[0][1],
                    ),
                ),
                PROTOCOL_TYPE,
            )
        classic.protocol_name = classic.members.select_protocol()
        classic.note_subscriptions()
        record = classic_records.group_record(classic, departed_leader_id=departed_id)
        records = [*group.tombstones(), record]
        _log.info("consumer group %s becomes a classic group", group.group_id)
        self._classic.adopt(classic)

        def appended(error: KafkaError | None) -> None:
            if error is not None:
                self._classic.release(classic, ErrorCode.UNKNOWN_MEMBER_ID)
                self._membership.groups[group.group_id] = group
                return
            for member_id in group.members:
                self._membership.timers.cancel_all(group.group_id, member_id)

        return Result(records, is_replayed=False, on_append=appended)

    def _classic_group(self, group_id: str) -> ClassicGroup:
        group = self._membership.groups[group_id]
        assert isinstance(group, ClassicGroup), group
        return group


def _cannot_upgrade(group: Group, reason: str) -> KafkaError:
    return errors.GroupIdNotFound(
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


def _creation(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Return the records that create the group, in Kafka's order."""
    group_id, members = group.group_id, group.members.values()
    return [
        *(member_records.member_metadata(group_id, member) for member in members),
        member_records.group_epoch(group_id, group.group_epoch, group.metadata_hash),
        *(
            member_records.target_assignment(group_id, member.member_id, group.target_of(member))
            for member in members
        ),
        member_records.target_epoch(group_id, group.group_epoch, 0),
        *(member_records.current_assignment(group_id, member) for member in members),
    ]
