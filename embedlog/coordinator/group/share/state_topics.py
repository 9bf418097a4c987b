"""`StateTopics`: the share partitions of a group, and how far their state is.

    initializing   a request for their first state is under way
    initialized    the share coordinator has their state: only these are assigned to members
    deleting       a request to delete the state of the whole topic is under way, or failed

A partition may be in the first two: AlterShareGroupOffsets initialises the state anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from embedlog.common import Value

Numbers = frozenset[int]
Named = Mapping[bytes, tuple[str, Numbers]]
"""Topic id -> (topic name, partition numbers); topics without partitions are absent."""

NO_NUMBERS: Numbers = frozenset()
_NOTHING: tuple[str, Numbers] = ("", NO_NUMBERS)


class StateTopics(Value):
    """The content of a record of type 15."""

    initializing: Named = {}
    initialized: Named = {}
    deleting: Mapping[bytes, str] = {}
    """Topic id -> topic name."""

    def numbers_initialized(self, topic_id: bytes) -> Numbers:
        return self.initialized.get(topic_id, _NOTHING)[1]

    def numbers_initializing(self, topic_id: bytes) -> Numbers:
        return self.initializing.get(topic_id, _NOTHING)[1]

    def begun(self, wanted: Named) -> StateTopics:
        """Return the topics after partitions were begun; none of these topics is deleted now."""
        return self.replace(
            initializing=_joined(self.initializing, wanted),
            deleting={t: name for t, name in self.deleting.items() if t not in wanted},
        )

    def settled(self, done: Named, failed: Named) -> StateTopics:
        """Return the topics after the share coordinator has answered for these partitions."""
        rest = _without(_without(self.initializing, done), failed)
        return self.replace(initializing=rest, initialized=_joined(self.initialized, done))

    def deletion_begun(self, topic_ids: Iterable[bytes]) -> StateTopics:
        """Return the topics after the deletion of all state of these topics was begun."""
        going = {
            topic_id: (self.initialized.get(topic_id) or self.initializing[topic_id])[0]
            for topic_id in topic_ids
        }
        left = self.without(going)
        return left.replace(deleting={**left.deleting, **going})

    def without(self, topic_ids: Iterable[bytes]) -> StateTopics:
        """Return the topics without these, for example because they were deleted."""
        gone = set(topic_ids)
        return StateTopics(
            {t: named for t, named in self.initializing.items() if t not in gone},
            {t: named for t, named in self.initialized.items() if t not in gone},
            {t: name for t, name in self.deleting.items() if t not in gone},
        )

    def topic_ids(self) -> list[bytes]:
        """Return all topics whose state exists or is being made."""
        return list({**self.initialized, **self.initializing})

    def places(self, topic_ids: Iterable[bytes]) -> list[tuple[bytes, int]]:
        """Return the partitions of these topics whose state exists or is being made."""
        return [
            (topic_id, number)
            for topic_id in topic_ids
            for number in sorted(
                self.numbers_initialized(topic_id) | self.numbers_initializing(topic_id)
            )
        ]


def named_of(places: Iterable[tuple[bytes, int]], names: Mapping[bytes, str]) -> Named:
    """Return partitions by topic; `names` are the names of their topics."""
    numbers: dict[bytes, set[int]] = {}
    for topic_id, number in places:
        numbers.setdefault(topic_id, set()).add(number)
    return {topic_id: (names[topic_id], frozenset(some)) for topic_id, some in numbers.items()}


def _joined(known: Named, more: Named) -> Named:
    joined = dict(known)
    for topic_id, (name, numbers) in more.items():
        joined[topic_id] = name, joined.get(topic_id, _NOTHING)[1] | numbers
    return joined


def _without(known: Named, gone: Named) -> Named:
    left = {}
    for topic_id, (name, numbers) in known.items():
        rest = numbers - gone.get(topic_id, _NOTHING)[1]
        if rest:
            left[topic_id] = name, rest
    return left
