"""A topology with the partition counts that the cluster's topics give it.

number of tasks    the highest count of the topics that a subtopology reads
missing topics     internal topics that the broker has yet to create
problem            why no tasks can be assigned now
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value
from embedlog.coordinator.group.streams import status
from embedlog.coordinator.group.streams.partition_counts import UnfitCounts, decide
from embedlog.coordinator.group.streams.topology import InternalTopic, Subtopology, Topology

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.streams.partition_counts import Existing

_SHOWN_MAX = 3


class ConfiguredSubtopology(Value):
    """A subtopology whose internal topics all have a partition count."""

    task_count: int
    sources: tuple[str, ...]
    repartition_sinks: tuple[str, ...]
    repartition_sources: Mapping[str, InternalTopic]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """True if a state store has a changelog; then the tasks may have standby copies."""
        return bool(self.changelogs)

    def inputs(self) -> list[str]:
        return [*self.sources, *self.repartition_sources]


class ConfiguredTopology(Value):
    """See the module."""

    topology: Topology
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By id, in the order of the ids; None if the counts cannot be decided."""
    missing: tuple[InternalTopic, ...] = ()
    problem: status.Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


def configure(topology: Topology, metadata: MetadataImage) -> ConfiguredTopology:
    """Decide the partition counts. O(topics of the topology).

    Raises:
        StreamsInvalidTopology: the topology is invalid, whatever topics exist.
        UnknownServerError: see `partition_counts.decide`.
    """
    by_name = metadata.topics_by_name

    def existing(name: str) -> int | None:
        found = by_name.get(name)
        return None if found is None else len(found.partitions)

    lacking = sorted(
        {name for each in topology.subtopologies for name in each.sources if name not in by_name}
    )
    if lacking:
        text = f"Source topics {_summary(lacking)} are missing."
        return _unready(topology, status.MISSING_SOURCE_TOPICS, text)
    try:
        counts = decide(topology, existing)
        parts = {
            name: _configured(each, counts, existing)
            for name, each in sorted(topology.by_id().items())
        }
        missing = _missing(parts.values(), existing)
    except UnfitCounts as error:
        return _unready(topology, status.INCORRECTLY_PARTITIONED_TOPICS, str(error))
    if not missing:
        return ConfiguredTopology(topology, parts)
    text = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
    problem = status.Problem(status.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology, parts, missing, problem)


def _unready(topology: Topology, code: int, text: str) -> ConfiguredTopology:
    return ConfiguredTopology(topology, None, problem=status.Problem(code, text))


def _configured(
    each: Subtopology, counts: dict[str, int], existing: Existing
) -> ConfiguredSubtopology:
    def with_count(topic: InternalTopic) -> InternalTopic:
        if topic.partition_count:
            return topic
        return topic.replace(partition_count=counts[topic.name])

    def count_of(name: str) -> int:
        known = existing(name)
        return counts[name] if known is None else known

    return ConfiguredSubtopology(
        task_count=max(count_of(name) for name in each.inputs()),
        sources=tuple(sorted(set(each.sources))),
        repartition_sinks=tuple(sorted(set(each.repartition_sinks))),
        repartition_sources={t.name: with_count(t) for t in each.repartition_sources},
        changelogs={topic.name: with_count(topic) for topic in each.changelogs},
    )


def _missing(
    parts: Iterable[ConfiguredSubtopology], existing: Existing
) -> tuple[InternalTopic, ...]:
    """Return the internal topics that do not exist. Raise UnfitCounts if one has another count."""
    wanted: dict[str, InternalTopic] = {}
    for part in parts:
        wanted |= part.repartition_sources
    for part in parts:
        wanted |= part.changelogs
    missing = []
    for name, topic in sorted(wanted.items()):
        found = existing(name)
        if found is None:
            missing.append(topic)
        elif found != topic.partition_count:
            raise UnfitCounts(
                f"Existing topic {name} has different number of partitions: expected"
                f" {topic.partition_count}, found {found}"
            )
    return tuple(missing)


def _summary(names: list[str]) -> str:
    text = ", ".join(names[:_SHOWN_MAX])
    rest = len(names) - _SHOWN_MAX
    return f"{text} and {rest} additional topics" if rest > 0 else text
