"""The subscriptions of a group's members, and their preferred assignors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.coordinator.group.consumer.member import ConsumerMember
    from embedlog.coordinator.group.consumer.regexes import ResolvedRegex

_NO_TOPICS: frozenset[str] = frozenset()


class Subscriptions:
    """Counts the members that subscribe to each topic name and pattern. Only replay changes it."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.regexes: dict[str, int] = {}
        self.resolved: dict[str, ResolvedRegex] = {}
        """Pattern -> the topics that it matched; a pattern that was never matched has no entry."""

    def add(self, member: ConsumerMember) -> None:
        for name in member.topics:
            self.names[name] = self.names.get(name, 0) + 1
        if member.regex:
            self.regexes[member.regex] = self.regexes.get(member.regex, 0) + 1

    def remove(self, member: ConsumerMember) -> None:
        for name in member.topics:
            _count_down(self.names, name)
        if member.regex:
            _count_down(self.regexes, member.regex)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics to which a member subscribes by name or by pattern."""
        if not member.regex:
            return member.topics
        return member.topics | self._matched(member.regex)

    def includes(self, topic: str) -> bool:
        return topic in self.names or any(topic in self._matched(r) for r in self.regexes)

    def topics_after(
        self,
        *,
        without: ConsumerMember | None = None,
        added: ConsumerMember | None = None,
    ) -> set[str]:
        """Return the group's topics after `without` has left and `added` has joined. O(topics)."""
        topics = set(self.names)
        patterns = set(self.regexes)
        if without is not None:
            topics.difference_update(name for name in without.topics if self.names[name] == 1)
            if self.regexes.get(without.regex) == 1:
                patterns.remove(without.regex)
        if added is not None:
            topics |= added.topics
            patterns.add(added.regex)
        return topics.union(*map(self._matched, patterns))

    def topics_without(self, members: Iterable[ConsumerMember]) -> set[str]:
        rest = Subscriptions()
        rest.names, rest.regexes, rest.resolved = {**self.names}, {**self.regexes}, self.resolved
        for member in members:
            rest.remove(member)
        return rest.topics_after()

    def unresolved(self) -> bool:
        return any(regex not in self.resolved for regex in self.regexes)

    def _matched(self, regex: str) -> frozenset[str]:
        resolved = self.resolved.get(regex)
        return _NO_TOPICS if resolved is None else resolved.topics


class AssignorVotes:
    """Counts the members that prefer each assignor. Only replay changes it. Requires: the lock."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Assignor -> number of members that prefer it, at least one."""

    def add(self, member: ConsumerMember) -> None:
        _count(self.counts, member, 1)

    def remove(self, member: ConsumerMember) -> None:
        _count(self.counts, member, -1)

    def preferred(
        self,
        default: str,
        *,
        before: ConsumerMember | None = None,
        after: ConsumerMember | None = None,
    ) -> str:
        """Return the assignor that most members prefer, with `after` in place of `before`.

        The result is `default` if no member has a preference. If two assignors have equal votes,
        "uniform" wins, as in Kafka, whatever the default is.
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


def _count_down(counts: dict[str, int], key: str) -> None:
    count = counts[key] - 1
    if count:
        counts[key] = count
    else:
        del counts[key]
