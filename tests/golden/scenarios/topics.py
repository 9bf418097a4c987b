"""CreateTopics, DeleteTopics, CreatePartitions, Metadata, DescribeTopicPartitions."""

from __future__ import annotations

from tests.golden.requests import creation, make_topic
from tests.golden.run import Run, scenario
from wire.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from wire.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.schemas.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

MISSING_ID = bytes(range(1, 17))
CREATE_VERSIONS = range(2, 8)


def _one(**fields: object) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(**fields)], timeout_ms=15000)


@scenario
def create_topics_versions(run: Run) -> None:
    for version in CREATE_VERSIONS:
        name = run.topic(f"v{version}")
        run.send(creation(name, partitions=3), version, "three partitions")
        run.send(creation(name), version, "again")
        checked = creation(run.topic(f"d{version}"), validate_only=True)
        run.send(checked, version, "validate only")
        run.send(checked, version, "validate only, again")
        run.send(creation(name, validate_only=True), version, "validate an existing one")
        configs = {"retention.ms": "1000", "cleanup.policy": "compact"}
        run.send(creation(run.topic(f"c{version}"), configs=configs), version, "with configs")
        defaults = creation(run.topic(f"n{version}"), partitions=-1, replication=-1)
        run.send(defaults, version, "default counts")
        run.send(creation(run.topic("z"), partitions=0), version, "no partitions")
        run.send(creation(run.topic("z"), partitions=-2), version, "partitions -2")
        run.send(creation(run.topic("z"), replication=0), version, "replication 0")
        run.send(creation(run.topic("z"), replication=2), version, "replication 2 of 1")
        run.send(creation(run.topic("z"), partitions=10_001), version, "10,001 partitions")
        run.send(creation(run.topic("z"), timeout_ms=0), version, "timeout 0")
        run.send(creation(run.topic("z"), timeout_ms=-1), version, "timeout -1")
        run.send(creation(), version, "no topics")
        twice = creation(run.topic("z"), run.topic("z"), run.topic(f"s{version}"))
        run.send(twice, version, "the same name twice, beside another")


@scenario
def create_topics_names(run: Run) -> None:
    names = ["", ".", "..", "a b", "a/b", "ä", "x" * 249, "x" * 250, "__cluster_metadata", "a\x00b"]
    for name in names:
        run.send(creation(name, validate_only=len(name) == 249), 7, f"name {name[:20]!r}")
    run.setup(creation("g.collides_with"), 7)
    run.send(creation("g_collides.with"), 7, "collides with another name")
    run.send(creation("g.collides_with"), 7, "exists")


@scenario
def create_topics_assignments(run: Run) -> None:
    def assign(
        *rows: tuple[int, list[int]], partitions: int = -1, replication: int = -1
    ) -> CreateTopicsRequest:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in rows
        ]
        return _one(
            name=run.topic("a"), num_partitions=partitions, replication_factor=replication,
            assignments=assignments, configs=[],
        )  # fmt: skip

    for version in (2, 5, 7):
        run.send(assign((0, [1]), partitions=1), version, "with a partition count")
        run.send(assign((0, [1]), replication=1), version, "with a replication factor")
        run.send(assign((0, [7])), version, "unknown broker")
        run.send(assign((0, [1, 1])), version, "broker twice")
        run.send(assign((0, [])), version, "no brokers")
        run.send(assign((1, [1])), version, "not from 0")
        run.send(assign((0, [1]), (2, [1])), version, "with a gap")
        run.send(assign((0, [1]), (0, [1])), version, "partition twice")
        run.send(assign((0, [-1])), version, "broker -1")
    run.send(assign((1, [1]), (0, [1])), 7, "two partitions, backwards")


@scenario
def create_topics_configs(run: Run) -> None:
    wrong: dict[str, str | None] = {
        "no.such.config": "1",
        "retention.ms": "abc",
        "segment.bytes": "1",
        "cleanup.policy": "wrong",
        "compression.type": "brotli",
        "max.message.bytes": "-1",
        "min.insync.replicas": "0",
        "message.timestamp.type": "Sometimes",
        "min.cleanable.dirty.ratio": "2",
        "preallocate": "perhaps",
        "retention.bytes": "12.5",
        "segment.ms": "0",
        "unclean.leader.election.enable": "",
        "compression.gzip.level": "11",
        "compression.zstd.level": "23",
        "flush.messages": "0",
        "index.interval.bytes": "-1",
        "": "x",
        "delete.retention.ms": None,
        "message.timestamp.after.max.ms": "-1",
        "remote.storage.enable": "true",
        "file.delete.delay.ms": "-1",
    }
    for key, value in wrong.items():
        request = creation(run.topic("w"), configs={key: value})
        run.send(request, 7, f"{key}={value}")
    right: dict[str, str | None] = {
        "cleanup.policy": "",
        "retention.bytes": "-2",
        "retention.ms": "-1",
        "compression.type": "zstd",
        "cleanup.policy ": "delete",
        "segment.ms": " 60000 ",
        "preallocate": "TRUE",
    }
    for number, (key, value) in enumerate(right.items()):
        request = creation(run.topic(f"r{number}"), configs={key: value})
        run.send(request, 7, f"{key!r}={value!r}")
    rows = [CreatableTopicConfig(name="retention.ms", value=v) for v in ("1", "2")]
    double = _one(
        name=run.topic("twice"), num_partitions=1, replication_factor=1, assignments=[],
        configs=rows,
    )  # fmt: skip
    run.send(double, 7, "the same config twice")


@scenario
def delete_topics(run: Run) -> None:
    for version in range(1, 6):
        name, _ = make_topic(run, f"v{version}")
        gone = DeleteTopicsRequest(topic_names=[name], timeout_ms=15000)
        run.send(gone, version, "one topic")
        run.send(gone, version, "again")
        for bad in ("", "a b", "x" * 250):
            request = DeleteTopicsRequest(topic_names=[bad], timeout_ms=15000)
            run.send(request, version, f"name {bad[:10]!r}")
        other, _ = make_topic(run, f"w{version}")
        twice = DeleteTopicsRequest(topic_names=[other, other], timeout_ms=15000)
        run.send(twice, version, "the same name twice")
        run.send(DeleteTopicsRequest(topic_names=[], timeout_ms=15000), version, "no topics")


@scenario
def delete_topics_by_id(run: Run) -> None:
    def delete(*rows: tuple[str | None, bytes]) -> DeleteTopicsRequest:
        topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in rows]
        return DeleteTopicsRequest(topics=topics, timeout_ms=15000)

    name, topic_id = make_topic(run, "a")
    run.send(delete((None, topic_id)), 6, "by id")
    run.send(delete((None, topic_id)), 6, "by id, again")
    run.send(delete((name, bytes(16))), 6, "by its old name")
    name, topic_id = make_topic(run, "b")
    run.send(delete((name, topic_id)), 6, "name and id")
    run.send(delete((None, bytes(16))), 6, "neither")
    run.send(delete((None, MISSING_ID)), 6, "unknown id")
    run.send(delete((name, bytes(16)), (None, topic_id)), 6, "the same by name and by id")
    run.send(delete((name, bytes(16))), 6, "by name")
    other, _ = make_topic(run, "c")
    run.send(delete((other, bytes(16)), (other, bytes(16))), 6, "the same name twice")


@scenario
def create_partitions(run: Run) -> None:
    def grow(
        name: str, count: int, *assignments: list[int], null: bool = True, **fields: object
    ) -> CreatePartitionsRequest:
        rows = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
        topic = CreatePartitionsTopic(
            name=name, count=count, assignments=None if null and not rows else rows
        )
        return CreatePartitionsRequest(topics=[topic], timeout_ms=15000, **fields)

    for version in range(4):
        name, _ = make_topic(run, f"v{version}")
        run.send(grow(name, 3), version, "to 3")
        run.send(grow(name, 3), version, "to 3 again")
        run.send(grow(name, 2), version, "back to 2")
        run.send(grow(name, 0), version, "to 0")
        run.send(grow(name, -1), version, "to -1")
        run.send(grow(name, 4, validate_only=True), version, "validate only")
        run.send(grow(name, 5, [1], [1]), version, "with assignments")
        run.send(grow(name, 7, [1]), version, "too few assignments")
        run.send(grow(name, 6, [9]), version, "unknown broker")
        run.send(grow(name, 6, [1, 1]), version, "broker twice")
        run.send(grow(name, 6, []), version, "no brokers")
        run.send(grow(name, 6, null=False), version, "empty assignments")
        run.send(grow(run.topic("none"), 3), version, "unknown topic")
        run.send(grow("a b", 3), version, "illegal name")
        run.send(grow(name, 20_000), version, "20,000 partitions")
        topic = CreatePartitionsTopic(name=name, count=9, assignments=None)
        twice = CreatePartitionsRequest(topics=[topic, topic], timeout_ms=15000)
        run.send(twice, version, "the same topic twice")
        late = CreatePartitionsRequest(topics=[topic], timeout_ms=0)
        run.send(late, version, "timeout 0")


def _metadata(*names: str | None, **fields: object) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, **fields)


@scenario
def metadata_versions(run: Run) -> None:
    name, topic_id = make_topic(run, partitions=2)
    for version in range(14):
        quiet = {"allow_auto_topic_creation": False} if version >= 4 else {}
        run.send(_metadata(name, **quiet), version, "one topic")
        if version >= 4:
            run.send(_metadata(run.topic("none"), **quiet), version, "unknown topic")
            run.send(_metadata(name, run.topic("none"), **quiet), version, "both")
        run.send(_metadata("a b", **quiet), version, "illegal name")
        run.send(_metadata("", **quiet), version, "empty name")
        run.send(_metadata("x" * 250, **quiet), version, "long name")
        run.send(_metadata(name, name, **quiet), version, "the same twice")
        if version >= 1:
            run.send(MetadataRequest(topics=[], **quiet), version, "no topics")
        if version >= 8:
            asked = _metadata(name, include_topic_authorized_operations=True, **quiet)
            run.send(asked, version, "with authorised operations")
        if 8 <= version <= 10:
            asked = _metadata(name, include_cluster_authorized_operations=True, **quiet)
            run.send(asked, version, "with the cluster's authorised operations")
        if version >= 10:
            rows = [
                ("by id", MetadataRequestTopic(name=None, topic_id=topic_id)),
                ("unknown id", MetadataRequestTopic(name=None, topic_id=MISSING_ID)),
                ("null name, zero id", MetadataRequestTopic(name=None)),
                ("name and id", MetadataRequestTopic(name=name, topic_id=topic_id)),
            ]
            for note, row in rows:
                run.send(MetadataRequest(topics=[row], **quiet), version, note)
            mixed = [MetadataRequestTopic(name=name), rows[0][1]]
            run.send(MetadataRequest(topics=mixed, **quiet), version, "a name beside an id")


@scenario
def metadata_creates_topics(run: Run) -> None:
    for version in (0, 1, 4, 5, 8, 9, 12, 13):
        run.send(_metadata(run.topic(f"v{version}")), version, "an unknown topic is created")


@scenario
def describe_topic_partitions(run: Run) -> None:
    first, _ = make_topic(run, "a", partitions=3)
    second, _ = make_topic(run, "b", partitions=2)

    def ask(
        *names: str, limit: int = 2000, cursor: Cursor | None = None
    ) -> DescribeTopicPartitionsRequest:
        return DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )

    run.send(ask(first), 0, "one topic")
    run.send(ask(first, second), 0, "two topics")
    run.send(ask(second, first), 0, "two topics, backwards")
    run.send(ask(run.topic("none")), 0, "unknown topic")
    run.send(ask("a b"), 0, "illegal name")
    run.send(ask(first, second, limit=2), 0, "two partitions at most")
    run.send(ask(first, second, limit=3), 0, "three partitions at most")
    run.send(ask(first, second, limit=4), 0, "four partitions at most")
    run.send(ask(first, limit=0), 0, "limit 0")
    run.send(ask(first, limit=-1), 0, "limit -1")
    for index in (0, 1, 2, 3, -1):
        cursor = Cursor(topic_name=first, partition_index=index)
        run.send(ask(first, second, cursor=cursor), 0, f"from partition {index}")
    later = Cursor(topic_name=second, partition_index=1)
    run.send(ask(first, second, cursor=later), 0, "from the second topic")
    missing = Cursor(topic_name=run.topic("aa"), partition_index=0)
    run.send(ask(first, second, cursor=missing), 0, "from a topic that is not there")
