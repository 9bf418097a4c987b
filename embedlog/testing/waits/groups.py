"""Conditions of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.testing.inspection.brokers import MOVING, Brokers
from embedlog.testing.inspection.group_values import DEAD, GroupValue, counted, shown
from embedlog.testing.inspection.groups import read_group, read_groups
from embedlog.testing.inspection.log_records import UNCOMMITTED
from embedlog.testing.names import nearest
from embedlog.testing.waits.condition import Condition, T
from embedlog.testing.waits.watched_partitions import WatchedPartitions

_STABLE, _EMPTY = "Stable", "Empty"
_SHOWN_MAX = 10


class GroupCondition(Condition[T]):
    """A condition of one group."""

    def __init__(
        self,
        brokers: Brokers,
        group_id: str,
        topics: Iterable[str] = (),
        isolation: str = UNCOMMITTED,
    ) -> None:
        self.brokers = brokers
        self._isolation = isolation
        self.group_id = group_id
        self._topics = tuple(topics)
        self.value = GroupValue(group_id)
        self._moving: Exception | None = None

    def read(self) -> GroupValue | None:
        """Return the group as it is now; None while its coordinator moves to another broker."""
        try:
            self.value = read_group(
                self.brokers,
                self.group_id,
                waits=False,
                topics=self._topics,
                isolation=self._isolation,
            )
        except MOVING as error:
            self._moving = error
            return None
        self._moving = None
        return self.value

    def seen(self) -> str:
        if self._moving is not None:
            return f"the group's coordinator is moving: {self._moving!r}"
        return str(self.value)

    def near(self) -> Sequence[str]:
        if self.value.exists or self._moving is not None:
            return ()
        try:
            groups = read_groups(self.brokers)
        except EmbedlogError:
            return ()
        if not groups:
            return ["there are no groups at all"]
        names = {each.group_id: each for each in groups}
        like = nearest(self.group_id, names)
        if like is not None:
            return [f"there is a group {like!r}: {names[like].summary()}"]
        return [f"there are the groups {', '.join(map(repr, list(names)[:_SHOWN_MAX]))}"]


class Shape(GroupCondition[GroupValue]):
    """A group's state, and the numbers of its members and assigned partitions."""

    def __init__(
        self,
        brokers: Brokers,
        group_id: str,
        *,
        state: str | None,
        members: int | None,
        assigned: int | None,
    ) -> None:
        super().__init__(brokers, group_id)
        self._members = members
        self._assigned = assigned
        if state is not None:
            self._states: tuple[str, ...] = (state,)
        else:
            self._states = (_EMPTY, DEAD) if members == 0 else (_STABLE,)
        parts = [f"group {group_id!r} in state {' or '.join(self._states)}"]
        if members is not None:
            parts.append(counted(members, "member"))
        if assigned is not None:
            parts.append(counted(assigned, "assigned partition"))
        self.wanted = ", ".join(parts)

    def look(self) -> GroupValue | None:
        found = self.read()
        if found is None or found.state not in self._states:
            return None
        if self._members is not None and len(found.members) != self._members:
            return None
        if self._assigned is not None and len(found.assigned) != self._assigned:
            return None
        return found

    def near(self) -> Sequence[str]:
        facts = list(super().near())
        idle = [each.member_id for each in self.value.members if not each.assignment]
        if idle:
            facts.append(f"without a partition: {', '.join(idle[:_SHOWN_MAX])}")
        behind = [
            each.member_id
            for each in self.value.members
            if each.epoch != self.value.target_epoch or each.assignment != each.target
        ]
        if behind:
            facts.append(f"not yet at their target: {', '.join(behind[:_SHOWN_MAX])}")
        return facts


class Rebalanced(GroupCondition[GroupValue]):
    """A group that is stable in a later generation or epoch."""

    def __init__(self, brokers: Brokers, group_id: str, since: int | None) -> None:
        super().__init__(brokers, group_id)
        self._since = since
        self._set_wanted()

    def begin(self) -> None:
        if self._since is None:
            self._since = read_group(self.brokers, self.group_id).epoch
            self._set_wanted()

    def _set_wanted(self) -> None:
        self.wanted = f"group {self.group_id!r} stable after generation or epoch {self._since}"

    def look(self) -> GroupValue | None:
        found = self.read()
        assert self._since is not None, self.group_id
        if found is None or found.state != _STABLE or found.epoch <= self._since:
            return None
        return found


class Lag(GroupCondition[dict[TopicPartition, int]]):
    """A group whose lag is at most a number of records."""

    def __init__(
        self,
        brokers: Brokers,
        group_id: str,
        lag: int,
        *,
        topics: Sequence[str],
        isolation: str,
        wake: Callable[[], object],
    ) -> None:
        super().__init__(brokers, group_id, topics, isolation)
        self._lag = lag
        self._of = frozenset(topics)
        self._watched = WatchedPartitions(brokers, wake)
        of = f" of {', '.join(map(repr, topics))}" if topics else ""
        self.wanted = f"lag{of} of group {group_id!r} at most {lag}"

    def look(self) -> dict[TopicPartition, int] | None:
        found = self.read()
        if found is None:
            return None
        lags = self._lags(found)
        # Watch first: a record that comes between the two reads must not be missed.
        if self._watched.watch({*lags, *found.committed, *found.assigned}):
            found = self.read()
            if found is None:
                return None
            lags = self._lags(found)
        if not lags:
            return None
        return lags if sum(lags.values()) <= self._lag else None

    def _lags(self, value: GroupValue) -> dict[TopicPartition, int]:
        return {
            place: lag
            for place, lag in value.lags.items()
            if not self._of or place.topic in self._of
        }

    def seen(self) -> str:
        lags = self._lags(self.value)
        return f"lag {sum(lags.values())}\n{super().seen()}"

    def near(self) -> Sequence[str]:
        facts = list(super().near())
        lags = self._lags(self.value)
        behind = [f"{shown(place)} lags {lag}" for place, lag in lags.items() if lag]
        if behind:
            facts.append(", ".join(behind[:_SHOWN_MAX]))
        elif not lags and self.value.exists:
            facts.append("no member has a partition yet, and nothing is committed")
        return facts

    def end(self) -> None:
        self._watched.close()


class Committed(GroupCondition[dict[TopicPartition, int]]):
    """A group that has committed at least these offsets."""

    def __init__(
        self, brokers: Brokers, group_id: str, offsets: Mapping[TopicPartition, int]
    ) -> None:
        super().__init__(brokers, group_id)
        self._offsets = offsets
        texts = ", ".join(f"{shown(place)}: {offset}" for place, offset in offsets.items())
        self.wanted = f"committed offsets of group {group_id!r} of at least {texts}"

    def look(self) -> dict[TopicPartition, int] | None:
        found = self.read()
        if found is None or self._missing(found):
            return None
        return {place: found.committed[place] for place in self._offsets}

    def _missing(self, value: GroupValue) -> list[TopicPartition]:
        return [
            place
            for place, offset in self._offsets.items()
            if value.committed.get(place, -1) < offset
        ]

    def near(self) -> Sequence[str]:
        facts = list(super().near())
        for place in self._missing(self.value)[:_SHOWN_MAX]:
            present = self.value.committed.get(place)
            has = "nothing" if present is None else present
            owner = self.value.assigned.get(place)
            who = "nobody has the partition" if owner is None else f"{owner!r} has it"
            facts.append(f"{shown(place)}: {has} of {self._offsets[place]}, {who}")
        return facts
