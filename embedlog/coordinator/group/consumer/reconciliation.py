"""One step of a member towards its target (KIP-848). A pure function, O(own partitions).

    revoke    assigned - target          the member must stop reading these first
    assign    target - assigned          the partitions that no other member holds

    partitions to revoke that it owns      UNREVOKED_PARTITIONS    epoch unchanged
    else, a partition is held elsewhere    UNRELEASED_PARTITIONS   target epoch
    else                                   STABLE                  target epoch

Topics that the member no longer subscribes to count as not in the target, even before the next
target is made.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer.member import NO_PARTITIONS, ConsumerMember, Epochs, Owned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set

    from embedlog.coordinator.group.assignors.spec import Partitions

    Holder = Callable[[bytes, int], str | None]

_NOTHING: Mapping[int, int] = {}
_NO_NUMBERS: frozenset[int] = frozenset()


class MemberReconciliation(Value):
    """The facts that a member's step depends on."""

    target_epoch: int
    target: Partitions
    owned: Partitions | None
    """The partitions that the member reports; None if it reported nothing, and so may own any."""
    holder: Holder
    """A function that returns the member that holds a partition, or None. A member holds a
    partition until it has given it up."""
    subscribed_topics: Set[bytes]
    """Ids of the topics that the member reads."""
    subscription_changed: bool
    """True if this request changes the member's subscription."""

    def step(self, member: ConsumerMember) -> ConsumerMember:
        """Return the member's next state; the same object if nothing changes.

        Raises:
            FencedMemberEpoch: the member is in an unknown state and owns partitions.
        """
        if member.state == states.STABLE:
            if member.epoch != self.target_epoch:
                return self._next(member, member.epoch)
            return self._unsubscribe(member) if self.subscription_changed else member
        if member.state == states.UNREVOKED_PARTITIONS:
            if self._owns(member.revoking):
                return self._unsubscribe(member) if self.subscription_changed else member
            # A changed subscription may bring a member to this state before the next target is
            # made: then its epoch is already the target's.
            return self._next(member, min(member.epoch + 1, self.target_epoch))
        if member.state == states.UNRELEASED_PARTITIONS:
            return self._next(member, member.epoch)
        if self.owned is None or self.owned:
            raise errors.FencedMemberEpoch(
                "The consumer group member is in a unknown state."
                " The member must abandon all its partitions and rejoin.",
            )
        return self._next(member, self.target_epoch)

    def _next(self, member: ConsumerMember, epoch_until_revoked: int) -> ConsumerMember:
        assigned: dict[bytes, Epochs] = {}
        revoking: dict[bytes, Epochs] = {}
        is_waiting = False
        for topic_id in {**member.assigned, **self.target}:
            epochs = member.assigned.get(topic_id, _NOTHING)
            wanted = self.target.get(topic_id, _NO_NUMBERS)
            if topic_id not in self.subscribed_topics:
                wanted = _NO_NUMBERS
            kept = {number: epoch for number, epoch in epochs.items() if number in wanted}
            revoked = {number: epoch for number, epoch in epochs.items() if number not in wanted}
            given_up = member.revoking.get(topic_id, _NOTHING)
            for number in sorted(wanted - kept.keys()):
                # A partition that the member was about to give up is in its target again: the
                # member keeps it.
                if number in given_up or self.holder(topic_id, number) is None:
                    kept[number] = self.target_epoch
                else:
                    is_waiting = True
            if kept:
                assigned[topic_id] = kept
            if revoked:
                revoking[topic_id] = revoked
        if revoking and self._owns(revoking):
            return member.replace(
                state=states.UNREVOKED_PARTITIONS,
                epoch=epoch_until_revoked,
                previous_epoch=member.epoch,
                assigned=_without_new(assigned, member.assigned),
                revoking=revoking,
            )
        return member.replace(
            state=states.UNRELEASED_PARTITIONS if is_waiting else states.STABLE,
            epoch=self.target_epoch,
            previous_epoch=member.epoch,
            assigned=assigned,
            revoking=NO_PARTITIONS,
        )

    def _unsubscribe(self, member: ConsumerMember) -> ConsumerMember:
        """Take from the member the topics that it no longer reads; its epoch stays."""
        gone = {
            topic_id: epochs
            for topic_id, epochs in member.assigned.items()
            if topic_id not in self.subscribed_topics
        }
        if not gone:
            return member
        assigned = {
            topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in gone
        }
        revoking = {**member.revoking}
        for topic_id, epochs in gone.items():
            revoking[topic_id] = {**revoking.get(topic_id, _NOTHING), **epochs}
        if not self._owns(revoking):
            return member.replace(assigned=assigned)
        return member.replace(
            state=states.UNREVOKED_PARTITIONS, assigned=assigned, revoking=revoking
        )

    def _owns(self, partitions: Owned) -> bool:
        """Return whether the member may still own any of these partitions."""
        if self.owned is None:
            return True
        return any(
            not numbers.isdisjoint(partitions[topic_id])
            for topic_id, numbers in self.owned.items()
            if topic_id in partitions
        )


def _without_new(assigned: Owned, before: Owned) -> Owned:
    """Drop newly assigned partitions: the member gets none until it has given up the others."""
    kept = {
        topic_id: {n: epoch for n, epoch in epochs.items() if n in before.get(topic_id, _NOTHING)}
        for topic_id, epochs in assigned.items()
    }
    return {topic_id: epochs for topic_id, epochs in kept.items() if epochs}
