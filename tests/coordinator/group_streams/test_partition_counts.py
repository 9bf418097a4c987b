"""Partition counts of internal topics."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.coordinator.group.streams.partition_counts import UnfitCounts, decide
from embedlog.coordinator.group.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)

EXISTING = {"two": 2, "three": 3}


def decided(*parts: Subtopology) -> dict[str, int]:
    return decide(Topology(0, parts), EXISTING.get)


def part(name: str, *sources: str, **fields: object) -> Subtopology:
    return Subtopology(name, sources, **fields)  # type: ignore[arg-type]


def topics(*names: str, count: int = 0) -> tuple[InternalTopic, ...]:
    return tuple(InternalTopic(name, count) for name in names)


def test_a_chain_of_repartitions_takes_the_count_of_its_source() -> None:
    chain = [
        part("2", repartition_sources=topics("b"), changelogs=topics("c")),
        part("1", repartition_sinks=("b",), repartition_sources=topics("a")),
        part("0", "three", "two", repartition_sinks=("a",)),
    ]
    assert decided(*chain) == {"a": 3, "b": 3, "c": 3}


def test_topics_together_take_one_count() -> None:
    together = CopartitionGroup((0,), (), (0,))
    parts = [
        part("0", "three", repartition_sinks=("a",)),
        part("1", "two", repartition_sources=topics("a"), copartition_groups=(together,)),
    ]
    assert decided(*parts) == {"a": 2}
    parts[1] = parts[1].replace(repartition_sources=topics("a", count=4))
    with pytest.raises(UnfitCounts, match=r"\[4\] of repartition topic \[a\]"):
        decided(*parts)


def test_external_topics_together_have_to_fit() -> None:
    together = CopartitionGroup((0, 1), (), ())
    with pytest.raises(UnfitCounts, match=r"\[\{three=3, two=2\}\]"):
        decided(part("0", "two", "three", copartition_groups=(together,)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([part("0", "two", repartition_sources=topics("a"))], "never used as a sink"),
        (
            [
                part("0", repartition_sinks=("a",), repartition_sources=topics("b")),
                part("1", repartition_sinks=("b",), repartition_sources=topics("a")),
            ],
            "loops",
        ),
        ([part("7")], "No source topics found for subtopology 7"),
    ],
)
def test_what_cannot_be_decided_is_refused(parts: list[Subtopology], message: str) -> None:
    with pytest.raises(errors.StreamsInvalidTopology, match=message):
        decided(*parts)


@pytest.mark.parametrize("index", [1, -1])
def test_an_index_of_no_topic_is_refused(index: int) -> None:
    wrong = CopartitionGroup((index,), (), ())
    with pytest.raises(errors.UnknownServerError):
        decided(part("0", "two", copartition_groups=(wrong,)))
