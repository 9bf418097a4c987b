"""Partition counts of internal topics, where the application leaves them open.

    repartition topic   the count that the application gives, else the highest count of the topics
                        that the writing subtopology reads; then as its co-partition groups demand
    changelog           the number of tasks: the highest count of the topics that its subtopology
                        reads

A co-partition group of external and repartition topics takes the count of the external ones. If it
has only repartition topics, it takes the count that the application gives to any of its repartition
topics, else the highest one.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.coordinator.group.streams.topology import CopartitionGroup, Subtopology, Topology

    Counts = Mapping[str, int]
    Existing = Callable[[str], int | None]
    """Topic -> its number of partitions; None if it does not exist."""


class UnfitCounts(Exception):
    """Topics whose partition counts do not fit together; the text is for the application."""


def decide(topology: Topology, existing: Existing) -> dict[str, int]:
    """Return the partition counts of all internal topics. Requires: all sources exist.

    Raises:
        UnfitCounts: the topics of a co-partition group have different counts.
        StreamsInvalidTopology: a count cannot be decided.
        UnknownServerError: a co-partition group names a topic that the subtopology does not have.
    """
    counts = _of_repartition_topics(topology, existing)

    def count_of(name: str) -> int:
        known = existing(name)
        known = counts.get(name) if known is None else known
        if known is None:
            raise errors.UnknownServerError()
        return known

    given = [topic for topic in topology.repartition_sources() if topic.partition_count]
    fixed = {topic.name: None for topic in given}
    names = {topic.name for topic in topology.repartition_sources()}
    for each in topology.subtopologies:
        for group in each.copartition_groups:
            members = _members(each, group)
            decided = _copartitioned(members, fixed, names, count_of)
            counts.update(decided)
    for each in topology.subtopologies:
        task_count = max((count_of(name) for name in each.inputs()), default=None)
        if task_count is None:
            raise errors.StreamsInvalidTopology(
                f"No source topics found for subtopology {each.subtopology_id}"
            )
        counts.update({topic.name: task_count for topic in each.changelogs})
    return counts


def _of_repartition_topics(topology: Topology, existing: Existing) -> dict[str, int]:
    counts = {
        topic.name: topic.partition_count
        for topic in topology.repartition_sources()
        if topic.partition_count
    }
    is_open = True
    while is_open:
        is_open = has_decided = False
        for each in topology.subtopologies:
            count = _highest(each, counts, existing)
            for name in each.repartition_sinks:
                if name in counts:
                    continue
                if count is None:
                    is_open = True
                else:
                    counts[name] = count
                    has_decided = True
        if is_open and not has_decided:
            raise errors.StreamsInvalidTopology(
                "Failed to compute number of partitions for all repartition topics. There may be"
                " loops in the topology that cannot be resolved."
            )
    if any(topic.name not in counts for topic in topology.repartition_sources()):
        raise errors.StreamsInvalidTopology(
            "Failed to compute number of partitions for all repartition topics, because a"
            " repartition source topic is never used as a sink topic."
        )
    return counts


def _highest(each: Subtopology, counts: Counts, existing: Existing) -> int | None:
    """Return the highest known count of the topics that a subtopology reads."""
    known = [counts.get(topic.name) for topic in each.repartition_sources]
    known += [existing(name) for name in each.sources]
    return max((count for count in known if count is not None), default=None)


def _members(each: Subtopology, group: CopartitionGroup) -> list[str]:
    try:
        return each.copartitioned(group)
    except IndexError:
        raise errors.UnknownServerError() from None


def _copartitioned(
    members: list[str],
    fixed: Iterable[str],
    repartition_topics: set[str],
    count_of: Callable[[str], int],
) -> dict[str, int]:
    """Return the count of each repartition topic of one co-partition group."""
    if not members:
        return {}
    internal = {name: count_of(name) for name in members if name in repartition_topics}
    external = {name: count_of(name) for name in members if name not in repartition_topics}
    given = {name: count_of(name) for name in fixed}
    if external:
        count = _same(external.values(), external)
    elif given:
        count = _same(given.values(), internal)
    else:
        count = max(internal.values())
    for name, own in internal.items():
        if name in given and own != count:
            raise UnfitCounts(
                f"Number of partitions [{own}] of repartition topic [{name}] doesn't match number"
                f" of partitions [{count}] of the source topic."
            )
    return dict.fromkeys(internal, count)


def _same(counts: Iterable[int], shown: Counts) -> int:
    first, *others = counts
    if any(other != first for other in others):
        listed = ", ".join(f"{name}={count}" for name, count in sorted(shown.items()))
        raise UnfitCounts(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    return first
