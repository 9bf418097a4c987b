"""`Holders`: the member of a consumer group that holds each partition."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.consumer.member import ConsumerMember, Owned

_NOTHING: dict[int, int] = {}


class Holders:
    """The holder of each partition: the member that has it assigned or has yet to give it up.

    Only replay changes it. Requires for every method: the lock of the shard that holds the group.
    """

    def __init__(self) -> None:
        self._by_topic_id: dict[bytes, dict[int, str]] = {}

    def add(self, member: ConsumerMember) -> None:
        """Make a member the holder of its partitions, in place of earlier holders."""
        for held in (member.assigned, member.revoking):
            for topic_id, epochs in held.items():
                self._by_topic_id.setdefault(topic_id, {}).update(
                    dict.fromkeys(epochs, member.member_id)
                )

    def remove(self, member: ConsumerMember) -> None:
        """Remove a member as the holder of its partitions, unless another member took them over."""
        for held in (member.assigned, member.revoking):
            for topic_id, epochs in held.items():
                holders = self._by_topic_id.get(topic_id, {})
                for number in epochs:
                    if holders.get(number) == member.member_id:
                        del holders[number]
                if not holders:
                    self._by_topic_id.pop(topic_id, None)

    def holder(self, topic_id: bytes, partition: int) -> str | None:
        """Return the id of the member that holds a partition; None if no member holds it."""
        holders = self._by_topic_id.get(topic_id)
        return None if holders is None else holders.get(partition)

    def hold_any(self, target: Partitions, *, but_for: Owned) -> bool:
        """Return whether a member holds a partition of `target` that is not in `but_for`."""
        return any(
            self.holder(topic_id, number) is not None
            for topic_id, numbers in target.items()
            for number in numbers
            if number not in but_for.get(topic_id, _NOTHING)
        )
