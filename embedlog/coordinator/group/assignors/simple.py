"""The "simple" assignor of share groups (KIP-932): a partition may have several members.

With P partitions and M members, each partition gets S = ceil(M / P) members. The S x P places are
dealt evenly: member i gets ceil(SP(i + 1) / M) - ceil(SP i / M) of them. A member keeps partitions
of its last assignment as far as these numbers allow.

Members with equal subscriptions share all partitions; otherwise the members of each topic share
that topic's. A partition whose topic has a subscriber always gets at least one member.
"""

from __future__ import annotations

from embedlog.common import deque
from embedlog.coordinator.group.assignors.spec import is_homogeneous
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions

    Place = tuple[bytes, int]

NAME = "simple"
_CLASS = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"


def check_configured(names: Sequence[str]) -> None:
    """Raise ConfigError unless group.share.assignors names this assignor alone, or its class."""
    if list(names) not in ([NAME], [_CLASS]):
        raise ConfigError(f"group.share.assignors: {', '.join(names)!r}; it has to be {NAME!r}")


def assign(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Set[int]]
) -> dict[str, Partitions]:
    """Return every member's partitions. `partitions` are the assignable ones by topic id."""
    held: dict[str, list[Place]] = {member_id: [] for member_id in members}
    for group, topic_ids in _parts(members, partitions):
        places = [(t, number) for t in topic_ids for number in sorted(partitions[t])]
        dealt = _Deal(group, places, {each: members[each].assigned for each in group}).run()
        for member_id, some in dealt.items():
            held[member_id] += some
    return {member_id: _by_topic(places) for member_id, places in held.items()}


def _parts(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Set[int]]
) -> list[tuple[list[str], list[bytes]]]:
    """Return (members, topics) so that the members of each part share its topics alone."""
    if is_homogeneous(members):
        topics = next(iter(members.values())).topics if members else frozenset()
        shared = [topic_id for topic_id in partitions if topic_id in topics]
        return [(list(members), shared)]
    return [
        ([each for each, spec in members.items() if topic_id in spec.topics], [topic_id])
        for topic_id in partitions
    ]


class _Deal:
    """An assignment in the making."""

    def __init__(
        self, members: Sequence[str], places: Sequence[Place], before: Mapping[str, Partitions]
    ) -> None:
        count = len(members)
        self._members = members
        self._sharing = -(-count // len(places)) if places else 0
        total = self._sharing * len(places)
        ends = [-(-total * index // count) for index in range(count + 1)] if count else [0]
        self._wanted = {each: ends[i + 1] - ends[i] for i, each in enumerate(members)}
        self._by_place: dict[Place, list[str]] = {place: [] for place in places}
        # Dictionaries serve as ordered sets.
        self._by_member: dict[str, dict[Place, None]] = {}
        for member_id in members:
            kept = [(t, n) for t, numbers in before[member_id].items() for n in sorted(numbers)]
            found = dict.fromkeys(place for place in kept if place in self._by_place)
            self._by_member[member_id] = found
            for place in found:
                self._by_place[place].append(member_id)

    def run(self) -> dict[str, list[Place]]:
        if self._members and self._by_place:
            self._take_shared()
            self._take_surplus()
            self._hand_out()
        return {member_id: sorted(places) for member_id, places in self._by_member.items()}

    def _surplus(self, member_id: str) -> int:
        return len(self._by_member[member_id]) - self._wanted[member_id]

    def _take(self, member_id: str, place: Place) -> None:
        del self._by_member[member_id][place]
        self._by_place[place].remove(member_id)

    def _take_shared(self) -> None:
        """Take partitions that too many members have, if possible from members with too many."""
        for place, holders in self._by_place.items():
            excess = len(holders) - self._sharing
            if excess > 0:
                by_surplus = sorted(holders, key=lambda each: self._surplus(each) <= 0)
                for member_id in by_surplus[:excess]:
                    self._take(member_id, place)

    def _take_surplus(self) -> None:
        for member_id in self._members:
            surplus = self._surplus(member_id)
            if surplus > 0:
                for place in list(self._by_member[member_id])[-surplus:]:
                    self._take(member_id, place)

    def _hand_out(self) -> None:
        unfilled = deque(each for each in self._members if self._surplus(each) < 0)
        for place, holders in self._by_place.items():
            passed = []
            while len(holders) < self._sharing and unfilled:
                member_id = unfilled.popleft()
                if member_id in holders:
                    passed.append(member_id)
                    continue
                holders.append(member_id)
                self._by_member[member_id][place] = None
                if self._surplus(member_id) < 0:
                    # Behind the others, but not for this partition again.
                    passed.append(member_id)
            unfilled.extend(passed)


def _by_topic(places: Sequence[Place]) -> Partitions:
    found: dict[bytes, set[int]] = {}
    for topic_id, number in places:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
