"""`AssignorVotes`: the server assignors that members of a consumer group prefer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.consumer.member import ConsumerMember


class AssignorVotes:
    """Counts the members that prefer each assignor. Changed by replay.

    Requires for every method: the lock of the shard that holds the group.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Assignor -> number of members that prefer it, at least one."""

    def add(self, member: ConsumerMember) -> None:
        """Add the member's vote, if it has one."""
        _count(self.counts, member, 1)

    def remove(self, member: ConsumerMember) -> None:
        """Remove the member's vote."""
        _count(self.counts, member, -1)

    def preferred(
        self,
        default: str,
        *,
        before: ConsumerMember | None = None,
        after: ConsumerMember | None = None,
    ) -> str:
        """Return the assignor that most members prefer, with `after` in place of `before`.

        `default` if no member has a preference. Of two with equal votes "uniform" wins, as in
        Kafka, whatever the default is.
        """
        counts = dict(self.counts)
        if before is not None:
            _count(counts, before, -1)
        if after is not None:
            _count(counts, after, 1)
        return max(counts, key=lambda name: (counts[name], name), default=default)


def _count(counts: dict[str, int], member: ConsumerMember, step: int) -> None:
    name = member.server_assignor
    if name is None:
        return
    count = counts.get(name, 0) + step
    assert count >= 0, (name, counts)
    if count:
        counts[name] = count
    else:
        del counts[name]
