"""Requests about topics, records and settings, in all variations of `tests.golden.variations`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.golden import batches
from tests.golden.requests import (
    Topic,
    creation,
    fetch,
    is_written,
    make_offsets_topic,
    make_topic,
    produce,
)
from tests.golden.run import Run, scenario
from tests.golden.variations import vary
from wire.schemas.alter_configs import AlterableConfig as OldConfig
from wire.schemas.alter_configs import AlterConfigsRequest
from wire.schemas.alter_configs import AlterConfigsResource as OldResource
from wire.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest
from wire.schemas.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from wire.schemas.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from wire.schemas.describe_topic_partitions import TopicRequest as LookedUp
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from wire.schemas.unregister_broker import UnregisterBrokerRequest

TOPIC_RESOURCE = 2
DATA = batches.simple(b"a")
WITH_MAGIC_3 = batches.simple(b"a", magic=3)


def _filled(run: Run, suffix: str = "t") -> Topic:
    """Return a topic with three batches of one record."""
    topic = make_topic(run, suffix)
    for _ in range(3):
        run.until(is_written, produce(topic, 9, DATA), 9, keep=False)
    return topic


def _fresh(run: Run) -> Callable[[], Topic]:
    """Return a function that returns another topic with three batches at each call."""
    numbers = count()
    return lambda: _filled(run, f"t{next(numbers)}")


@scenario
def variations_of_produce(run: Run) -> None:
    topic = make_topic(run)
    for version in (3, 9, 12, 13):
        vary(
            run, version, lambda v=version: produce(topic, v, DATA),
            without=("topic_data.partition_data.records null",),
        )  # fmt: skip


@scenario
def a_topic_or_partition_twice(run: Run) -> None:
    """The entries of one name differ, so that the answer shows which of them count."""
    topic, other = make_topic(run, partitions=2), make_topic(run, "other")
    for version in (3, 9, 12, 13):
        first, second = produce(topic, version, DATA), produce(topic, version, DATA, partition=1)
        beside = produce(other, version, DATA)
        first.topic_data += [*beside.topic_data, *second.topic_data]
        run.send(first, version, "a topic twice, with two partitions")
        twice = produce(topic, version, DATA, batches.simple(b"b", b"c"))
        run.send(twice, version, "a partition twice, with other records")
        first, second = (produce(topic, version, each) for each in (DATA, WITH_MAGIC_3))
        first.topic_data += [*beside.topic_data, *second.topic_data]
        run.send(first, version, "a topic twice, and a magic that refuses the request")
    filled = _filled(run, "filled")
    for version in range(3):
        for offsets in ((1, 2), (3, 2), (99, 2), (2, 99)):
            rows = [DeleteRecordsPartition(partition_index=0, offset=each) for each in offsets]
            whole = DeleteRecordsTopic(name=filled[0], partitions=rows)
            apart = [DeleteRecordsTopic(name=filled[0], partitions=[row]) for row in rows]
            for note, topics in (("partition", [whole]), ("topic", apart)):
                request = DeleteRecordsRequest(topics=topics, timeout_ms=5000)
                run.send(request, version, f"a {note} twice, up to {offsets}")
    for version in (4, 11, 16):
        first, second = fetch(topic, version), fetch(topic, version, 1)
        first.topics += second.topics
        run.send(first, version, "a topic twice, from two offsets")
        first = fetch(topic, version)
        first.topics[0].partitions += fetch(topic, version, 1).topics[0].partitions
        run.send(first, version, "a partition twice, from two offsets")


@scenario
def variations_of_fetch(run: Run) -> None:
    topic = _filled(run)
    for version in (4, 11, 12, 16, 18):
        vary(
            run, version,
            lambda v=version: fetch(
                topic, v, forgotten=[(topic, [0])] if v >= 7 else (), max_bytes=1 << 20
            ),
        )  # fmt: skip


@scenario
def variations_of_list_offsets(run: Run) -> None:
    name, _ = _filled(run)
    rows = [ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [ListOffsetsTopic(name=name, partitions=rows)]
    for version in (1, 4, 11):
        vary(
            run, version,
            lambda: ListOffsetsRequest(
                replica_id=-1, timeout_ms=1000,
                topics=[
                    ListOffsetsTopic(
                        name=name,
                        partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)],
                    )
                ],
            ),
        )  # fmt: skip
    del topics
    for timestamp in range(-9, 0):
        rows[0].timestamp = timestamp
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=rows)], timeout_ms=1000
        )
        run.send(request, 11, f"timestamp {timestamp}")


@scenario
def variations_of_offset_for_leader_epoch(run: Run) -> None:
    name, _ = _filled(run)
    for version in (2, 4):
        vary(
            run, version,
            lambda: OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic=name,
                        partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)],
                    )
                ]
            ),
        )  # fmt: skip


@scenario
def variations_of_delete_records(run: Run) -> None:
    topic = _filled(run)
    for version in (0, 2):
        vary(
            run, version,
            lambda: DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=topic[0],
                        partitions=[DeleteRecordsPartition(partition_index=0, offset=1)],
                    )
                ],
                timeout_ms=5000,
            ),
        )  # fmt: skip


@scenario
def delete_records_of_internal_topics(run: Run) -> None:
    make_offsets_topic(run)
    for topic in ("__consumer_offsets", "__transaction_state_none", "__share_group_state"):
        for partition in (0, 99, -1):
            row = DeleteRecordsPartition(partition_index=partition, offset=0)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=5000
            )
            run.send(request, 2, f"{topic} {partition}")


@scenario
def variations_of_topic_admin(run: Run) -> None:
    numbers = count()

    def grow() -> CreatePartitionsRequest:
        name, _ = make_topic(run, f"grown{next(numbers)}")
        place = CreatePartitionsAssignment(broker_ids=[1])
        row = CreatePartitionsTopic(name=name, count=2, assignments=[place])
        return CreatePartitionsRequest(topics=[row], timeout_ms=15000)

    vary(run, 3, lambda: creation(run.topic(f"new{next(numbers)}"), configs={"retention.ms": "1"}))
    vary(run, 3, grow)


@scenario
def variations_of_configs(run: Run) -> None:
    name, _ = make_topic(run)

    def resource() -> dict[str, Any]:
        return {"resource_type": TOPIC_RESOURCE, "resource_name": name}

    for version in (0, 1):
        vary(
            run, version,
            lambda: IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        **resource(),
                        configs=[
                            AlterableConfig(name="retention.ms", config_operation=0, value="1000")
                        ],
                    )
                ]
            ),
        )  # fmt: skip
        vary(
            run, version,
            lambda: AlterConfigsRequest(
                resources=[
                    OldResource(
                        **resource(), configs=[OldConfig(name="retention.ms", value="1000")]
                    )
                ]
            ),
            without=("resources with an entry twice",),
        )  # fmt: skip
    for version in (1, 4):
        vary(
            run, version,
            lambda: DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(**resource(), configuration_keys=["retention.ms"])
                ]
            ),
            without=(
                # Their answers have all settings, which other scenarios compare.
                "resources.configuration_keys null",
                "resources.configuration_keys empty",
            ),
        )  # fmt: skip


@scenario
def variations_of_elections_and_reassignments(run: Run) -> None:
    name, _ = make_topic(run)
    for version in range(3):
        vary(
            run, version,
            lambda: ElectLeadersRequest(
                topic_partitions=[TopicPartitions(topic=name, partitions=[0])], timeout_ms=5000
            ),
            without=("topic_partitions null",),
        )  # fmt: skip
    for kind in (0, 1, 2, -1, 99):
        for timeout_ms in (5000, 0):
            for topics in ([], [TopicPartitions(topic=name, partitions=[])]):
                request = ElectLeadersRequest(
                    election_type=kind, topic_partitions=topics, timeout_ms=timeout_ms
                )
                note = f"type {kind} of {len(topics)} empty topics, timeout {timeout_ms}"
                run.send(request, 1, note)
                run.send(request, 2, note)
    for version in (0, 1):
        vary(
            run, version,
            lambda: AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name=name,
                        partitions=[ReassignablePartition(partition_index=0, replicas=[1])],
                    )
                ]
            ),
        )  # fmt: skip
    vary(
        run, 0,
        lambda: ListPartitionReassignmentsRequest(
            topics=[ListPartitionReassignmentsTopics(name=name, partition_indexes=[0])]
        ),
    )  # fmt: skip


@scenario
def variations_of_look_ups(run: Run) -> None:
    name, topic_id = make_topic(run, partitions=2)
    for version in (4, 9, 12):
        vary(
            run, version,
            lambda: MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            ),
            without=("topics null", "topics empty"),  # answers with topics of other scenarios
        )  # fmt: skip
    for version in (12, 13):
        vary(
            run, version,
            lambda: MetadataRequest(
                topics=[MetadataRequestTopic(name=None, topic_id=topic_id)],
                allow_auto_topic_creation=False,
            ),
            without=("topics null",),
        )  # fmt: skip
    for cursor in (None, Cursor(topic_name=name, partition_index=1)):
        vary(
            run, 0,
            lambda c=cursor: DescribeTopicPartitionsRequest(
                topics=[LookedUp(name=name)], response_partition_limit=10, cursor=c
            ),
            without=("topics empty",),
        )  # fmt: skip
    for version in (1, 4):
        for timeout_ms in (0, -1):
            for names in ([name], [run.topic("none")], [name, name], [name, ""]):
                request = DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
                run.send(request, version, f"timeout {timeout_ms}, {len(names)} names")
    for timeout_ms in (0, -1):
        rows = [DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=bytes(range(16)))]
        request = DeleteTopicsRequest(topics=rows, timeout_ms=timeout_ms)
        run.send(request, 6, f"timeout {timeout_ms}, two ids")
    vary(
        run, 4,
        lambda: DeleteTopicsRequest(topic_names=[run.topic("none")], timeout_ms=5000),
    )  # fmt: skip
    vary(
        run, 6,
        lambda: DeleteTopicsRequest(
            topics=[DeleteTopicState(name=run.topic("none"))], timeout_ms=5000
        ),
    )  # fmt: skip


@scenario
def variations_of_descriptions(run: Run) -> None:
    name, _ = _filled(run)
    for version in (1, 2, 4, 5):
        vary(
            run, version,
            lambda: DescribeLogDirsRequest(
                topics=[DescribableLogDirTopic(topic=name, partitions=[0])]
            ),
            without=("topics null",),
        )  # fmt: skip
    vary(
        run, 0,
        lambda: DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0])]),
    )  # fmt: skip
    for version in (0, 1, 2):
        vary(run, version, DescribeClusterRequest)
    vary(
        run, 2,
        lambda: AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path="/no/such/directory",
                    topics=[AlterReplicaLogDirTopic(name=name, partitions=[0])],
                )
            ]
        ),
    )  # fmt: skip
    for broker_id in (-1, -2, 99):
        run.send(UnregisterBrokerRequest(broker_id=broker_id), 0, f"broker {broker_id}")
    for note, topics in (
        ("no topics", []),
        ("another topic", [(name, 0)]),
        ("another partition", [("__cluster_metadata", 1)]),
        ("it and another topic", [("__cluster_metadata", 0), (name, 0)]),
    ):
        request = DescribeQuorumRequest(
            topics=[
                RequestTopicData(
                    topic_name=topic, partitions=[RequestPartitionData(partition_index=index)]
                )
                for topic, index in topics
            ]
        )
        run.send(request, 2, note)
