"""Every call of consumer and admin client explains a wrong argument, in every form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import ConfigResource, ResourceType, errors

HERE = ("jobs", 0)
TOPIC = ConfigResource(ResourceType.TOPIC, "jobs")
Call = Callable[[Any], Any]

LONE_NAMES: dict[str, Call] = {
    "create_topics(topics=": lambda client: client.create_topics("jobs"),
    "delete_topics(topics=": lambda client: client.delete_topics("jobs"),
    "describe_topics(topics=": lambda client: client.describe_topics("jobs"),
    "describe_groups(group_ids=": lambda client: client.describe_groups("jobs"),
    "delete_groups(group_ids=": lambda client: client.delete_groups("jobs"),
    "list_groups(states=": lambda client: client.list_groups(states="jobs"),
    "list_groups(types=": lambda client: client.list_groups(types="jobs"),
    "remove_members(member_ids=": lambda client: client.remove_members("g", member_ids="jobs"),
    "remove_members(instance_ids=": lambda client: client.remove_members("g", instance_ids="jobs"),
    "list_group_offsets(groups=": lambda client: client.list_group_offsets("jobs"),
    "list_group_offsets(groups: g=": lambda client: client.list_group_offsets({"g": "jobs"}),
    "delete_group_offsets(partitions=": lambda client: client.delete_group_offsets("g", "jobs"),
    "describe_producers(partitions=": lambda client: client.describe_producers("jobs"),
    "describe_transactions(transactional_ids=": lambda client: client.describe_transactions("jobs"),
    "fence_producers(transactional_ids=": lambda client: client.fence_producers("jobs"),
    "list_transactions(states=": lambda client: client.list_transactions(states="jobs"),
    "describe_configs(names=": lambda client: client.describe_configs([TOPIC], names="jobs"),
    "describe_configs(resources=": lambda client: client.describe_configs("jobs"),
    "describe_log_dirs(node_ids=": lambda client: client.describe_log_dirs("jobs"),
    "elect_leaders(partitions=": lambda client: client.elect_leaders(0, "jobs"),
    "list_partition_reassignments(partitions=": lambda client: client.list_partition_reassignments(
        "jobs"
    ),
    "describe_replica_log_dirs(replicas=": lambda client: client.describe_replica_log_dirs("jobs"),
}
"""Calls of the admin client that take a list, here called with one text."""

LONE_PARTITIONS: dict[str, Call] = {
    "assign(partitions=": lambda consumer: consumer.assign("jobs"),
    "committed(partitions=": lambda consumer: consumer.committed("jobs"),
    "beginning_offsets(partitions=": lambda consumer: consumer.beginning_offsets("jobs"),
    "end_offsets(partitions=": lambda consumer: consumer.end_offsets("jobs"),
    "subscribe(topics=": lambda consumer: consumer.subscribe("jobs"),
    "seek_to_beginning(partitions[0]=": lambda consumer: consumer.seek_to_beginning("jobs"),
    "seek_to_end(partitions[0]=": lambda consumer: consumer.seek_to_end("jobs"),
    "pause(partitions[0]=": lambda consumer: consumer.pause("jobs"),
    "resume(partitions[0]=": lambda consumer: consumer.resume("jobs"),
    "seek(partition=": lambda consumer: consumer.seek("jobs", 5),
    "position(partition=": lambda consumer: consumer.position("jobs"),
    "current_lag(partition=": lambda consumer: consumer.current_lag("jobs"),
    "commit(offsets=": lambda consumer: consumer.commit("jobs"),
    "offsets_for_times(timestamps=": lambda consumer: consumer.offsets_for_times("jobs"),
}

WRONG_TYPES: dict[str, Call] = {
    "poll(timeout_ms='5'): expected milliseconds": lambda c: c.poll("5"),
    "poll(timeout_ms=None): expected milliseconds": lambda c: c.poll(timeout_ms=None),
    "poll(max_records='5'): expected a whole number": lambda c: c.poll(max_records="5"),
    "assign(partitions[0]='jobs'): expected a TopicPartition": lambda c: c.assign(["jobs"]),
    "assign(partitions[0]: topic=b'jobs'): expected": lambda c: c.assign([(b"jobs", 0)]),
    "assign(partitions[0]: partition='0'): expected": lambda c: c.assign([("jobs", "0")]),
    "assign(partitions[0]: partition=0.0): expected": lambda c: c.assign([("jobs", 0.0)]),
    "write [('jobs', 0)]": lambda c: c.assign(("jobs", 0)),
    "write [TopicPartition('jobs', 0)]": lambda c: c.end_offsets(
        embedlog.TopicPartition("jobs", 0)
    ),
    "seek(offset='5'): expected an offset as int, got str": lambda c: c.seek(HERE, "5"),
    "seek(offset=5.0): expected an offset as int, got float": lambda c: c.seek(HERE, 5.0),
    "seek(offset=None): expected an offset as int": lambda c: c.seek(HERE, None),
    "pause([('jobs', 0)]): expected partitions one by one": lambda c: c.pause([HERE]),
    "partitions_for(topic=b'jobs'): expected": lambda c: c.partitions_for(b"jobs"),
    "partitions_for(timeout_ms='5')": lambda c: c.partitions_for("jobs", timeout_ms="5"),
    "list_topics(timeout_ms='5')": lambda c: c.list_topics(timeout_ms="5"),
    "position(timeout_ms='5')": lambda c: c.position(HERE, timeout_ms="5"),
    "end_offsets(timeout_ms='5')": lambda c: c.end_offsets([HERE], timeout_ms="5"),
    "commit(timeout_ms='5')": lambda c: c.commit({HERE: 1}, timeout_ms="5"),
    "commit(offsets: jobs-0='5'): expected an offset": lambda c: c.commit({HERE: "5"}),
    "commit(offsets: jobs-0=None): expected an offset": lambda c: c.commit({HERE: None}),
    "committed(timeout_ms='5')": lambda c: c.committed([HERE], timeout_ms="5"),
    "offsets_for_times(timestamps: jobs-0=1.5): expected milliseconds": lambda c: (
        c.offsets_for_times({HERE: 1.5})
    ),
    "subscribe(listener=5): expected an object": lambda c: c.subscribe(["jobs"], listener=5),
    "subscribe(topics[0]=b'jobs'): expected topic names as str": lambda c: c.subscribe([b"jobs"]),
    "subscribe(topics=5): expected a list of topic names": lambda c: c.subscribe(5),
    "subscribe(pattern=5): expected a regular expression": lambda c: c.subscribe(pattern=5),
}
WRONG_VALUES: dict[str, Call] = {
    "poll(timeout_ms=-1): must not be negative": lambda c: c.poll(-1),
    "poll(max_records=0): must be at least 1": lambda c: c.poll(max_records=0),
    "seek(offset=-1): must not be negative": lambda c: c.seek(HERE, -1),
    "assign(partitions[0]: partition=-1): must not be": lambda c: c.assign([("jobs", -1)]),
    "a topic's name must not be empty": lambda c: c.assign([("", 0)]),
    "commit(offsets: jobs-0=-1): must not be negative": lambda c: c.commit({HERE: -1}),
}
BLOCKING_ONLY: dict[str, Call] = {
    "commit_async(callback=5): expected a function": lambda c: c.commit_async(callback=5),
    "commit_async(offsets=5): expected a dict": lambda c: c.commit_async(5),
    "close(timeout='5'): expected seconds": lambda c: c.close("5"),
}
ADMIN_WRONG: dict[str, Call] = {
    "create_topics(topics[1]=5): expected str or NewTopic": lambda a: a.create_topics(["a", 5]),
    "NewTopic(partition_count='3'): expected a number": lambda a: a.create_topics({"a": "3"}),
    "NewTopic(assignments: 0='12'): expected a list of node ids, got one str": lambda a: (
        a.create_topics([embedlog.NewTopic("a", assignments={0: "12"})])
    ),
    "create_partitions(counts=5): expected a dict": lambda a: a.create_partitions(5),
    "create_partitions(counts: jobs='2')": lambda a: a.create_partitions({"jobs": "2"}),
    "delete_records(offsets: jobs-0='1')": lambda a: a.delete_records({HERE: "1"}),
    "delete_records(offsets=": lambda a: a.delete_records([HERE]),
    "list_offsets(specs: jobs-0=None)": lambda a: a.list_offsets({HERE: None}),
    "alter_group_offsets(offsets: jobs-0='1')": lambda a: a.alter_group_offsets("g", {HERE: "1"}),
    "alter_group_offsets(group_id=5)": lambda a: a.alter_group_offsets(5, {HERE: 1}),
    "list_topics(timeout_ms='5')": lambda a: a.list_topics(timeout_ms="5"),
    "describe_cluster(timeout_ms='5')": lambda a: a.describe_cluster(timeout_ms="5"),
    "describe_configs(resources[0]=('topic', 'jobs')): expected ConfigResource": lambda a: (
        a.describe_configs([("topic", "jobs")])
    ),
    "elect_leaders(election_type='unclean'): expected an ElectionType": lambda a: a.elect_leaders(
        "unclean"
    ),
    "alter_partition_reassignments(reassignments: jobs-0='12'): expected a list": lambda a: (
        a.alter_partition_reassignments({HERE: "12"})
    ),
    "alter_partition_reassignments(reassignments: jobs-0[0]='1'): expected int": lambda a: (
        a.alter_partition_reassignments({HERE: ["1"]})
    ),
    "alter_replica_log_dirs(paths: key=('jobs', 0)): expected a TopicPartitionReplica": lambda a: (
        a.alter_replica_log_dirs({HERE: "/a"})
    ),
    "alter_replica_log_dirs(paths: ('jobs', 0, 1)=5): expected a directory's path": lambda a: (
        a.alter_replica_log_dirs({("jobs", 0, 1): 5})
    ),
    "describe_replica_log_dirs(replicas[0]: node_id='1'): expected a node id": lambda a: (
        a.describe_replica_log_dirs([("jobs", 0, "1")])
    ),
    "unregister_broker(node_id='1'): expected a node id": lambda a: a.unregister_broker("1"),
    "alter_configs(configs: ConfigResource(": lambda a: a.alter_configs({TOPIC: "a=b"}),
}


@pytest.fixture
def cluster() -> Iterator[Any]:
    with embedlog.open() as cluster:
        cluster.create_topic("jobs")
        yield cluster


@pytest.fixture(params=["in process", "over TCP"])
def target(request: pytest.FixtureRequest, cluster: Any) -> Any:
    if request.param == "in process":
        return cluster
    return cluster.listen("127.0.0.1", 0).address


def _refused(call: Call, client: Any, text: str, kind: type[Exception] = TypeError) -> None:
    with pytest.raises(kind) as caught:
        call(client)
    assert text in str(caught.value)


def test_a_lone_text_is_never_taken_apart(cluster: Any, target: Any) -> None:
    with embedlog.Admin(target) as admin:
        for text, call in LONE_NAMES.items():
            _refused(call, admin, f"{text}'jobs'): expected a list of ")
    assert cluster.topics == ["jobs"]
    with embedlog.Consumer(target, group_id="g") as consumer:
        for text, call in LONE_PARTITIONS.items():
            _refused(call, consumer, f"{text}'jobs'): expected ")


def test_lone_bytes_are_never_taken_apart(cluster: Any) -> None:
    with cluster.admin() as admin:
        _refused(lambda a: a.delete_topics(b"jobs"), admin, "got one bytes; write [b'jobs']")
        _refused(lambda a: a.describe_groups(b"g"), admin, "expected a list of group ids, got")
        _refused(lambda a: a.delete_topics([b"jobs"]), admin, "has 4 bytes, not 16", ValueError)


def test_a_consumers_wrong_arguments_are_named(target: Any) -> None:
    with embedlog.Consumer(target, group_id="g") as consumer:
        for text, call in {**WRONG_TYPES, **BLOCKING_ONLY}.items():
            _refused(call, consumer, text)
        for text, call in WRONG_VALUES.items():
            _refused(call, consumer, text, ValueError)
        # The refused calls leave nothing behind: the consumer works.
        consumer.assign([HERE])
        assert not consumer.poll(0)
        assert consumer.position(HERE) == 0


def test_an_admin_clients_wrong_arguments_are_named(target: Any) -> None:
    with embedlog.Admin(target) as admin:
        for text, call in ADMIN_WRONG.items():
            _refused(call, admin, text)
        assert list(admin.list_topics()) == ["jobs"]


def test_the_clients_for_asyncio_refuse_the_same(cluster: Any) -> None:
    async def refused(call: Call, client: Any, text: str, kind: type[Exception]) -> None:
        with pytest.raises(kind) as caught:
            await call(client)
        assert text in str(caught.value)

    async def main() -> None:
        async with embedlog.aio.Admin(cluster) as admin:
            for text, call in LONE_NAMES.items():
                await refused(call, admin, f"{text}'jobs'): expected a list of ", TypeError)
            for text, call in ADMIN_WRONG.items():
                await refused(call, admin, text, TypeError)
        async with embedlog.aio.Consumer(cluster, group_id="g") as consumer:
            for text, call in LONE_PARTITIONS.items():
                await refused(call, consumer, f"{text}'jobs'): expected ", TypeError)
            for text, call in WRONG_TYPES.items():
                await refused(call, consumer, text, TypeError)
            for text, call in WRONG_VALUES.items():
                await refused(call, consumer, text, ValueError)

    asyncio.run(main())
    assert cluster.topics == ["jobs"]


def test_pausing_several_partitions_pauses_all_or_none(cluster: Any) -> None:
    with cluster.consumer() as consumer:
        consumer.assign([HERE])
        with pytest.raises(TypeError):
            consumer.pause(HERE, "jobs")
        assert consumer.paused() == set()


def test_a_resource_is_named_by_kind() -> None:
    assert ConfigResource("topic", "jobs") == TOPIC
    with pytest.raises(ValueError, match="no such ResourceType"):
        ConfigResource("planet", "jobs")
    with pytest.raises(TypeError, match=r"ConfigResource\(name=5\): expected"):
        ConfigResource(ResourceType.TOPIC, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bad topic!", "contains one or more characters other than ASCII alphanumerics"),
        ("..", r"'\.\.' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
    ],
)
def test_a_name_that_no_topic_can_have_says_why(target: Any, name: str, why: str) -> None:
    with embedlog.Producer(target) as producer:
        with pytest.raises(errors.InvalidTopic, match=why):
            producer.send(name, b"v").result(10)
        with pytest.raises(errors.InvalidTopic, match=why):
            producer.partitions_for(name)
    with embedlog.Consumer(target, group_id="g") as consumer:
        with pytest.raises(errors.InvalidTopic, match=why):
            consumer.partitions_for(name)
        with pytest.raises(errors.InvalidTopic, match=why):
            consumer.end_offsets([(name, 0)])
        consumer.subscribe([name])
        with pytest.raises(errors.InvalidTopic, match=why):
            consumer.poll(10_000)
    with embedlog.Admin(target) as admin:
        for results in (admin.create_topics([name]), admin.describe_topics([name])):
            with pytest.raises(errors.InvalidTopic, match=why):
                results.check()


def test_a_clusters_own_call_names_its_arguments(cluster: Any) -> None:
    wrong: dict[str, Call] = {
        "create_topic(name=b'jobs'): expected a topic's name": lambda c: c.create_topic(b"jobs"),
        "create_topic(name=['a', 'b']): expected": lambda c: c.create_topic(["a", "b"]),
        "create_topic(partitions='3'): expected": lambda c: c.create_topic("a", "3"),
        "create_topic(partitions=2.0): expected": lambda c: c.create_topic("a", 2.0),
        "create_topic(config='a=b'): expected a dict": lambda c: c.create_topic("a", config="a=b"),
    }
    for text, call in wrong.items():
        _refused(call, cluster, text)
    assert cluster.topics == ["jobs"]


def test_a_time_may_be_a_whole_or_a_broken_number_of_milliseconds(target: Any) -> None:
    with embedlog.Admin(target) as admin:
        admin.create_topics({"more": 1}, timeout_ms=10_000.5).check()
    with embedlog.Consumer(target) as consumer:
        consumer.assign([HERE])
        assert not consumer.poll(0.5)
        assert consumer.end_offsets([HERE], timeout_ms=10_000.5) == {HERE: 0}
