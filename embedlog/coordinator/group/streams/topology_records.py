"""A topology as a message of a heartbeat, or of a record of type 23, and back."""

from __future__ import annotations

from embedlog.coordinator.group.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas import streams_group_metadata as schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.schemas import streams_group_heartbeat as heartbeat

    AnyTopology = heartbeat.Topology | schema.StreamsGroupTopologyValue
    AnySubtopology = heartbeat.Subtopology | schema.Subtopology
    AnyTopic = heartbeat.TopicInfo | schema.TopicInfo


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    """Return the record of type 23."""
    return CoordinatorRecord(
        schema.StreamsGroupTopologyKey(group_id=group_id),
        schema.StreamsGroupTopologyValue(
            epoch=topology.epoch, subtopologies=[_row(each) for each in topology.subtopologies]
        ),
    )


def without_topology(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of type 23."""
    return CoordinatorRecord(schema.StreamsGroupTopologyKey(group_id=group_id))


def read_topology(value: AnyTopology) -> Topology:
    """Return the topology of a message."""
    return Topology(value.epoch, tuple(_read_subtopology(row) for row in value.subtopologies))


def _row(each: Subtopology) -> schema.Subtopology:
    return schema.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=list(each.sources),
        source_topic_regex=list(each.source_regexes),
        state_changelog_topics=[_topic_row(topic) for topic in each.changelogs],
        repartition_sink_topics=list(each.repartition_sinks),
        repartition_source_topics=[_topic_row(topic) for topic in each.repartition_sources],
        copartition_groups=[
            schema.CopartitionGroup(
                source_topics=list(group.sources),
                source_topic_regex=list(group.source_regexes),
                repartition_source_topics=list(group.repartition_sources),
            )
            for group in each.copartition_groups
        ],
    )


def _topic_row(topic: InternalTopic) -> schema.TopicInfo:
    return schema.TopicInfo(
        name=topic.name,
        partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        topic_configs=[schema.TopicConfig(key=key, value=value) for key, value in topic.configs],
    )


def _read_subtopology(row: AnySubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=row.subtopology_id,
        sources=tuple(row.source_topics),
        source_regexes=tuple(row.source_topic_regex),
        changelogs=_read_topics(row.state_changelog_topics),
        repartition_sinks=tuple(row.repartition_sink_topics),
        repartition_sources=_read_topics(row.repartition_source_topics),
        copartition_groups=tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in row.copartition_groups
        ),
    )


def _read_topics(rows: Iterable[AnyTopic]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            name=row.name,
            partition_count=row.partitions,
            replication_factor=row.replication_factor,
            configs=tuple((config.key, config.value) for config in row.topic_configs),
        )
        for row in rows
    )
