"""`AssignorVotes`: which server assignor the members of a consumer group ask for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.consumer.member import ConsumerMember


class AssignorVotes:
    """How many members ask for each assignor. Changed by replay.

    Requires for every method: the lock of the shard that holds the group.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Assignor -> members that ask for it, at least one."""

    def add(self, member: ConsumerMember) -> None:
        """Count the member's vote, if it has one."""
        _count(self.counts, member, 1)

    def remove(self, member: ConsumerMember) -> None:
        """Count it no more."""
        _count(self.counts, member, -1)

    def preferred(
        self,
        default: str,
        *,
        before: ConsumerMember | None = None,
        after: ConsumerMember | None = None,
    ) -> str:
        """The assignor that most members ask for, once `after` stands for `before`; `default` when
        no member asks for any.

        Of two that as many ask for it is "uniform", as in Kafka, whatever the default is.
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
