"""`Topology`: the subtopologies of a Kafka Streams application, and the topics that they use.

source             a topic of somebody else, which the application reads
repartition topic  an internal topic between two subtopologies: one writes it, another reads it
changelog          an internal topic with the changes of a state store
co-partition group topics that must have the same number of partitions

The application gives the topology when it joins; the coordinator decides the partition counts that
the application leaves open (`configured_topology`).
"""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class InternalTopic(Value):
    """A repartition or changelog topic."""

    name: str
    partition_count: int = 0
    """0: the coordinator decides."""
    replication_factor: int = 0
    """0: the broker's default."""
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(Value):
    """Topics with one number of partitions, as indexes into the lists of their subtopology."""

    sources: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition_sources: tuple[int, ...] = ()


class Subtopology(Value):
    """A connected part of the application, which runs as one task for each partition."""

    subtopology_id: str
    sources: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    def inputs(self) -> list[str]:
        """Return the topics that the subtopology reads."""
        return [*self.sources, *(topic.name for topic in self.repartition_sources)]

    def copartitioned(self, group: CopartitionGroup) -> list[str]:
        """Return the topics of one of the co-partition groups, without repetition.

        Raises:
            IndexError: the group has an index that no topic has.
        """
        if min((*group.sources, *group.repartition_sources), default=0) < 0:
            raise IndexError(group)
        names = [self.sources[index] for index in group.sources]
        names += [self.repartition_sources[index].name for index in group.repartition_sources]
        return list(dict.fromkeys(names))


class Topology(Value):
    """A topology, at one epoch of it."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()

    def is_same_as(self, other: Topology) -> bool:
        """Return whether both have the same epoch and subtopologies, in any order."""
        return self.epoch == other.epoch and self.by_id() == other.by_id()

    def by_id(self) -> dict[str, Subtopology]:
        return {each.subtopology_id: each for each in self.subtopologies}

    def required_topics(self) -> set[str]:
        """Return all topics that must exist before tasks are assigned."""
        return {
            name
            for each in self.subtopologies
            for name in (*each.inputs(), *(topic.name for topic in each.changelogs))
        }

    def reader_of(self, topic: str) -> str | None:
        """Return the subtopology that reads a topic; None if no subtopology reads it."""
        for each in reversed(self.subtopologies):
            if topic in each.inputs():
                return each.subtopology_id
        return None

    def repartition_sources(self) -> Iterator[InternalTopic]:
        for each in self.subtopologies:
            yield from each.repartition_sources
