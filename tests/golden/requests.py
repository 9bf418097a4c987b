"""Short forms of the requests of the scenarios, each right for its version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.golden.run import Run
from wire.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

LATEST_CREATE_TOPICS = 7
PRODUCE_BY_ID = 13
FETCH_BY_ID = 13
CONSUMER = -1
"""The replica id of a client. Debugging consumers (-2) see the log's end even with open
transactions.
"""

Topic = tuple[str, bytes]


def creation(
    *names: str,
    partitions: int = 1,
    replication: int = 1,
    configs: dict[str, str | None] | None = None,
    timeout_ms: int = 15000,
    **fields: Any,
) -> CreateTopicsRequest:
    """CreateTopics for `names`, all with the same arguments."""
    rows = [CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()]
    topics = [
        CreatableTopic(
            name=n, num_partitions=partitions, replication_factor=replication, configs=rows
        )
        for n in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, **fields)


def make_topic(run: Run, suffix: str = "t", *, partitions: int = 1, **configs: str | None) -> Topic:
    """Create a topic of this run; return its name and id. Configs: dots written as underscores."""
    name = run.topic(suffix)
    dotted = {key.replace("_", "."): value for key, value in configs.items()}
    answer: CreateTopicsResponse = run.setup(
        creation(name, partitions=partitions, configs=dotted), LATEST_CREATE_TOPICS
    )
    (made,) = answer.topics
    assert made.error_code == 0, made
    run.normal.learn(made.topic_id, f"id of {suffix}")
    return name, made.topic_id


def make_offsets_topic(run: Run) -> None:
    """Create `__consumer_offsets` by the first request for it, and wait until it can be used."""
    while run.setup(FindCoordinatorRequest(key="warm"), 1).error_code != 0:
        continue


def produce(
    topic: Topic,
    version: int,
    *records: bytes | None,
    acks: int = -1,
    transactional_id: str | None = None,
    partition: int = 0,
    timeout_ms: int = 10000,
) -> ProduceRequest:
    """Produce the record sets, one partition entry each, all to one partition by default."""
    rows = [PartitionProduceData(index=partition, records=data) for data in records]
    where: dict[str, Any] = (
        {"topic_id": topic[1]} if version >= PRODUCE_BY_ID else {"name": topic[0]}
    )
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(partition_data=rows, **where)],
    )


def is_written(answer: ProduceResponse) -> bool:
    """Return whether every partition has its records. A new topic's leader may need a moment."""
    return not any(
        row.error_code for topic in answer.responses for row in topic.partition_responses
    )


def fetch(
    topic: Topic | None,
    version: int,
    offset: int = 0,
    *,
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    partition_fields: dict[str, Any] | None = None,
    forgotten: Sequence[tuple[Topic, list[int]]] = (),
    more: Sequence[tuple[Topic, int, int]] = (),
    **fields: Any,
) -> FetchRequest:
    """Fetch one partition (none if `topic` is None), and `more` = (topic, partition, offset)."""
    rows = [] if topic is None else [(topic, partition, offset)]
    topics = [
        FetchTopic(
            partitions=[
                FetchPartition(
                    partition=number,
                    fetch_offset=start,
                    partition_max_bytes=partition_max_bytes,
                    **(partition_fields or {}),
                )
            ],
            **_fetch_topic(where, version),
        )
        for where, number, start in [*rows, *more]
    ]
    gone = [
        ForgottenTopic(partitions=numbers, **_fetch_topic(where, version))
        for where, numbers in forgotten
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=topics,
        forgotten_topics_data=gone,
        **fields,
    )


def _fetch_topic(topic: Topic, version: int) -> dict[str, Any]:
    return {"topic_id": topic[1]} if version >= FETCH_BY_ID else {"topic": topic[0]}


def list_offsets(
    topic: str, *timestamps: int, partition: int = 0, epoch: int | None = None, **fields: Any
) -> ListOffsetsRequest:
    """ListOffsets of one partition, one entry for each timestamp, by a consumer."""
    extra = {} if epoch is None else {"current_leader_epoch": epoch}
    rows = [
        ListOffsetsPartition(partition_index=partition, timestamp=t, **extra) for t in timestamps
    ]
    topics = [ListOffsetsTopic(name=topic, partitions=rows)]
    return ListOffsetsRequest(topics=topics, **{"replica_id": CONSUMER, **fields})
