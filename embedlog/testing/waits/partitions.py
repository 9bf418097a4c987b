"""Conditions of partitions: records, leader, in-sync replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import shown
from embedlog.testing.inspection.log_records import RecordCount
from embedlog.testing.waits.condition import Condition
from embedlog.testing.waits.watched_partitions import WatchedPartitions


class Records(Condition[int]):
    """A number of records in a topic, or in one of its partitions."""

    def __init__(
        self,
        brokers: Brokers,
        places: Sequence[TopicPartition],
        count: int,
        *,
        isolation: str,
        wake: Callable[[], object],
    ) -> None:
        self._brokers = brokers
        self._wanted_count = count
        is_committed = isolation == "read_committed"
        self._counts = {place: RecordCount(is_committed=is_committed) for place in places}
        self._watched = WatchedPartitions(brokers, wake)
        self._isolation = isolation
        topic = places[0].topic
        where = f"topic {topic!r}" if len(places) != 1 else f"partition {shown(places[0])}"
        self.wanted = f"{count} records in {where} at {isolation}"

    def look(self) -> int | None:
        self._watched.watch(self._counts)
        for place, counted in self._counts.items():
            partition = self._brokers.leader(*place)
            if partition is not None:
                try:
                    counted.follow(partition.log)
                except EmbedlogError:
                    continue  # the log was cut, or closed: its next state wakes this wait
        total = sum(each.count for each in self._counts.values())
        return total if total >= self._wanted_count else None

    def seen(self) -> str:
        total = sum(each.count for each in self._counts.values())
        parts = ", ".join(f"{shown(place)}: {each.count}" for place, each in self._counts.items())
        return f"{total} records ({parts})"

    def near(self) -> Sequence[str]:
        facts = []
        for place in self._counts:
            partition = self._brokers.leader(*place)
            if partition is None:
                facts.append(f"{shown(place)} has no running leader")
                continue
            offsets = partition.log.offsets
            stable, high, end = (
                offsets.last_stable_offset,
                offsets.high_watermark,
                partition.log.log_end_offset,
            )
            if high < end:
                facts.append(f"{shown(place)}: {end - high} offsets are not replicated yet")
            if self._isolation == "read_committed" and stable < high:
                facts.append(f"{shown(place)}: a transaction is open from offset {stable} on")
        return facts

    def end(self) -> None:
        self._watched.close()


class Replicas(Condition[set[int]]):
    """The in-sync replicas of a partition."""

    def __init__(self, brokers: Brokers, place: TopicPartition, isr: frozenset[int]) -> None:
        self._brokers = brokers
        self._place = place
        self._isr = isr
        self._seen: tuple[int, ...] = ()
        self.wanted = f"in-sync replicas {sorted(isr)} of {shown(place)}"

    def look(self) -> set[int] | None:
        image = self._brokers.image.partition(*self._place)
        self._seen = () if image is None else image.isr
        return set(self._seen) if frozenset(self._seen) == self._isr else None

    def seen(self) -> str:
        return f"in-sync replicas {sorted(self._seen)}"

    def near(self) -> Sequence[str]:
        return _standing(self._brokers, self._place)


class Leader(Condition[int]):
    """The leader of a partition: a broker, or any."""

    def __init__(self, brokers: Brokers, place: TopicPartition, node_id: int | None) -> None:
        self._brokers = brokers
        self._place = place
        self._node_id = node_id
        self._seen = -1
        who = "a leader" if node_id is None else f"broker {node_id} as the leader"
        self.wanted = f"{who} of {shown(place)}"

    def look(self) -> int | None:
        image = self._brokers.image.partition(*self._place)
        self._seen = -1 if image is None else image.leader
        if self._seen < 0 or self._node_id not in (None, self._seen):
            return None
        # The metadata names it; it leads once it has learnt that itself.
        partition = self._brokers.replicas(*self._place).get(self._seen)
        return self._seen if partition is not None and partition.is_leader else None

    def seen(self) -> str:
        return "no leader" if self._seen < 0 else f"leader {self._seen}"

    def near(self) -> Sequence[str]:
        return _standing(self._brokers, self._place)


def _standing(brokers: Brokers, place: TopicPartition) -> list[str]:
    image = brokers.image.partition(*place)
    if image is None:
        return [f"there is no partition {shown(place)} any more"]
    running = [core.node_id for core in brokers.running()]
    return [
        f"replicas {sorted(image.replicas)}, in sync {sorted(image.isr)}, leader {image.leader}",
        f"running brokers {sorted(running)}",
    ]
