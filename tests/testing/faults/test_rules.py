"""Matchers, triggers and handles of rules, with raw requests to a broker's door."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.errors import ClosedError, ConfigError, NotCoordinator, TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import Kafka, UnfiredFault
from tests.testing.faults.conftest import Ask
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.records.batch import RecordBatch
from wire.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from wire.schemas.metadata import MetadataRequest
from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka(brokers=2, topics={"a": 2, "b": 1}) as made:
        yield made


def heartbeat(group: str = "g") -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id="m")


def offsets(*places: tuple[str, int]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)],
            )
            for topic, partition in places
        ],
    )


def code(answer: Any) -> int:
    found: int = answer.error_code
    return found


OURS = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# Matchers


@pytest.mark.parametrize(
    ("matcher", "hit", "miss"),
    [
        ({"node": 2}, {"node": 2}, {"node": 1}),
        ({"node": [1, 2]}, {"node": 2}, None),
        ({"client_id": "c"}, {"client_id": "c"}, {"client_id": "d"}),
        ({"client_id": re.compile("w-.*")}, {"client_id": "w-1"}, {"client_id": "v-1"}),
        ({"client_id": ["c", "d"]}, {"client_id": "d"}, {"client_id": "e"}),
        ({"principal": "User:ada"}, {"principal": "User:ada"}, {}),
        ({"versions": 3}, {"version": 3}, {"version": 4}),
        ({"versions": (1, 3)}, {"version": 2}, {"version": 0}),
        ({"versions": range(2, 4)}, {"version": 3}, {"version": 4}),
        ({"group": "g"}, {}, {"request": heartbeat("h")}),
        ({"where": lambda request: request.member_id == "m"}, {}, {"request": HeartbeatRequest()}),
    ],
)
def test_a_matcher_chooses_requests(
    kafka: Kafka, ask: Ask, matcher: Any, hit: Any, miss: Any
) -> None:
    with kafka.fault("Heartbeat", error=OURS, always=True, **matcher) as fault:
        if miss is not None:
            miss = dict(miss)
            assert code(ask(miss.pop("request", heartbeat()), **miss)) != OURS
        assert (fault.hits, fault.seen) == (0, 0)
        assert code(ask(heartbeat(), **hit)) == OURS
        assert (fault.hits, fault.seen) == (1, 1)
        assert [each.api for each in fault.requests] == ["Heartbeat"]


def test_a_topic_and_a_partition_choose_parts_of_a_request(kafka: Kafka, ask: Ask) -> None:
    with kafka.fault("ListOffsets", topic="a", partition=[1, 7], error=OURS, always=True) as fault:
        ask(offsets(("a", 0), ("b", 0)))
        assert fault.seen == 0
        answer = ask(offsets(("a", 0), ("b", 0), ("a", 1)))
    found = {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
    }
    assert found["a", 1] == OURS
    assert OURS not in {found["a", 0], found["b", 0]}


def test_two_rules_put_their_errors_at_their_own_partitions(kafka: Kafka, ask: Ask) -> None:
    other = ErrorCode.KAFKA_STORAGE_ERROR
    with (
        kafka.fault("ListOffsets", topic="a", error=OURS),
        kafka.fault("ListOffsets", topic="b", error=other),
    ):
        answer = ask(offsets(("a", 0), ("b", 0)))
    found = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert found == {"a": OURS, "b": other}


def test_an_older_rule_hides_a_request_from_younger_ones(kafka: Kafka, ask: Ask) -> None:
    with (
        kafka.fault("Heartbeat", error=OURS, times=2) as first,
        kafka.fault("Heartbeat", error="NOT_COORDINATOR", always=True) as second,
    ):
        answers = [code(ask(heartbeat())) for _ in range(3)]
    assert answers == [OURS, OURS, ErrorCode.NOT_COORDINATOR]
    assert (first.seen, second.seen) == (3, 1)


def test_topic_ids_have_names(kafka: Kafka, ask: Ask) -> None:
    image = kafka.broker(1).core.image
    request = FetchRequest(
        topics=[
            FetchTopic(
                topic_id=image.topics_by_name[name].topic_id,
                partitions=[FetchPartition(partition=0, partition_max_bytes=1)],
            )
            for name in ("a", "b")
        ],
        max_wait_ms=60_000,
        min_bytes=1,
    )
    with kafka.fault("Fetch", topic="b", error=OURS):
        answer = ask(request)
    found = {topic.topic_id: topic.partitions[0].error_code for topic in answer.responses}
    assert found[image.topics_by_name["b"].topic_id] == OURS
    assert found[image.topics_by_name["a"].topic_id] != OURS


def test_a_partition_of_a_fetch_session_has_the_error_without_being_named(
    kafka: Kafka, ask: Ask
) -> None:
    leader = kafka.partition("a", 0).leader
    assert leader is not None
    topic = kafka.broker(1).core.image.topics_by_name["a"]
    named = [
        FetchTopic(
            topic_id=topic.topic_id,
            partitions=[FetchPartition(partition=0, partition_max_bytes=1)],
        )
    ]
    begun = ask(FetchRequest(topics=named, session_epoch=0), node=leader)
    assert begun.session_id
    incremental = FetchRequest(session_id=begun.session_id, session_epoch=1, max_wait_ms=60_000)
    with kafka.fault("Fetch", topic="a", partition=0, error=OURS):
        answer = ask(incremental, node=leader)
    assert [(each.topic_id, each.partitions[0].error_code) for each in answer.responses] == [
        (topic.topic_id, OURS)
    ]
    with kafka.fault("Fetch", error="FETCH_SESSION_ID_NOT_FOUND"):
        answer = ask(FetchRequest(session_id=begun.session_id, session_epoch=2), node=leader)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_groups_of_one_request_have_errors_of_their_own(kafka: Kafka, ask: Ask) -> None:
    with kafka.fault("FindCoordinator", group="g", error=OURS):
        answer = ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"]))
    assert {each.key: each.error_code == OURS for each in answer.coordinators} == {
        "g": True,
        "h": False,
    }
    with kafka.fault("FindCoordinator", transactional_id="g", error=OURS, may_miss=True) as fault:
        ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        ask(FindCoordinatorRequest(key_type=0, key="g"), 2)
    assert fault.seen == 0
    with kafka.fault("DeleteGroups", group="g", error=OURS):
        answer = ask(DeleteGroupsRequest(groups_names=["g", "h"]))
    assert {each.group_id: each.error_code == OURS for each in answer.results} == {
        "g": True,
        "h": False,
    }
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "h")]
    with kafka.fault("OffsetFetch", group="g", error=OURS):
        answer = ask(OffsetFetchRequest(groups=groups), 9)
    assert {each.group_id: each.error_code == OURS for each in answer.groups} == {
        "g": True,
        "h": False,
    }


def test_unstable_offsets_are_told_at_the_partitions(kafka: Kafka, ask: Ask) -> None:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    with kafka.faults.offsets_unstable(group="g"):
        [group] = ask(request, 9).groups
    found = {
        (topic.name, each.partition_index, each.error_code)
        for topic in group.topics
        for each in topic.partitions
    }
    assert ("a", 1, ErrorCode.UNSTABLE_OFFSET_COMMIT) in found


def test_a_transactional_id_and_a_resource_choose(kafka: Kafka, ask: Ask) -> None:
    with kafka.fault("InitProducerId", transactional_id="tx", error=OURS):
        other = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        assert code(ask(other, 4)) != OURS
        wanted = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1)
        assert code(ask(wanted, 4)) == OURS
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[])
        for kind, name in ((2, "a"), (2, "b"), (4, "1"))
    ]
    for matcher in ({"resource": "a"}, {"topic": "a"}):
        with kafka.fault("DescribeConfigs", error=OURS, **matcher):  # type: ignore[arg-type]
            results = ask(DescribeConfigsRequest(resources=resources)).results
        assert {each.resource_name: each.error_code == OURS for each in results} == {
            "a": True,
            "b": False,
            "1": False,
        }


def test_a_topic_that_is_refused_is_not_created(kafka: Kafka, ask: Ask) -> None:
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("c", "d")
    ]
    with kafka.fault("CreateTopics", topic="c", error="POLICY_VIOLATION"):
        answer = ask(CreateTopicsRequest(topics=topics, timeout_ms=1_000))
    assert {each.name: each.error_code for each in answer.topics} == {
        "c": ErrorCode.POLICY_VIOLATION,
        "d": 0,
    }
    assert {"c", "d"} & kafka.broker(1).core.image.topics_by_name.keys() == {"d"}


def test_without_an_api_a_rule_is_for_all_that_have_its_fields(kafka: Kafka, ask: Ask) -> None:
    with kafka.fault(group="g", error=OURS, always=True) as fault:
        assert code(ask(heartbeat())) == OURS
        ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        ask(MetadataRequest(topics=None))
    assert fault.hits == 2


def test_requests_between_brokers_are_met_only_on_request() -> None:
    topics = {"t": {"partitions": 1, "replication_factor": 2}}
    with Kafka(brokers=2, topics=topics) as kafka:
        everything = kafka.fault(
            "Fetch", error="NOT_LEADER_OR_FOLLOWER", always=True, may_miss=True
        )
        kafka.producer().send("t", b"x").result()
        assert everything.hits == 0
        with kafka.fault("Fetch", internal=True, action="delay", seconds=0.001) as replicas:
            kafka.producer().send("t", b"x").result()
            replicas.wait()


# Triggers


@pytest.mark.parametrize(
    ("trigger", "acts"),
    [
        ({}, "1000000000"),
        ({"once": True}, "1000000000"),
        ({"nth": 3}, "0010000000"),
        ({"times": 2}, "1100000000"),
        ({"nth": 3, "times": 2}, "0011000000"),
        ({"always": True}, "1111111111"),
        ({"nth": 9, "always": True}, "0000000011"),
        ({"chance": 0.5, "seed": 7}, "0101001111"),
        ({"chance": 0.5, "seed": 7, "times": 2}, "0101000000"),
        ({"chance": 1.0}, "1111111111"),
    ],
)
def test_a_trigger_chooses_among_the_requests(
    kafka: Kafka, ask: Ask, trigger: Any, acts: str
) -> None:
    with kafka.fault("Heartbeat", error=OURS, **trigger) as fault:
        found = "".join("01"[code(ask(heartbeat())) == OURS] for _ in range(10))
    assert found == acts
    assert (fault.hits, fault.seen) == (acts.count("1"), 10)


# Handles


def test_a_rule_that_never_acts_tells_what_was_near(kafka: Kafka, ask: Ask) -> None:
    with (
        pytest.raises(AssertionError) as raised,
        kafka.fault("Heartbeat", group="g", client_id="c", error=OURS),
    ):
        ask(heartbeat("h"), client_id="c")
        ask(heartbeat("g"), client_id="d")
        ask(heartbeat("g"), client_id="d")
    lines = str(raised.value).splitlines()
    assert "never acted; it saw 0 matching requests" in lines[0]
    assert sorted(lines[1:]) == [
        "  1 x Heartbeat: group is 'h', not 'g'",
        "  2 x Heartbeat: client_id is 'd', not 'c'",
    ]
    with (
        pytest.raises(AssertionError, match=r"no such request came; others were: .*Metadata 1"),
        kafka.fault("SyncGroup", error=OURS),
    ):
        ask(MetadataRequest(topics=None))
    with (
        pytest.raises(AssertionError, match="it saw 1 matching requests, and acts once, nth=2"),
        kafka.fault("Heartbeat", error=OURS, nth=2),
    ):
        ask(heartbeat())


def test_a_rule_counts_the_requests_near_it(kafka: Kafka, ask: Ask) -> None:
    with (
        pytest.raises(AssertionError) as raised,
        kafka.fault("ListOffsets", topic="a", partition=9, error=OURS),
    ):
        for number in range(40):
            ask(offsets(("a", number % 8)))
    assert str(raised.value).splitlines()[1:] == [
        f"  5 x ListOffsets: partition is {number}, not 9" for number in range(8)
    ]


def test_an_error_in_a_with_of_the_cluster_goes_before_a_rule_that_never_acted() -> None:
    with pytest.raises(UnfiredFault), Kafka() as kafka:
        kafka.fault("Heartbeat", error=OURS)
    with pytest.raises(ZeroDivisionError), Kafka() as kafka:
        kafka.fault("Heartbeat", error=OURS)
        1 / 0  # noqa: B018


def test_the_end_of_the_cluster_reports_rules_that_never_acted() -> None:
    kafka = Kafka()
    kafka.fault("Heartbeat", group="g", error=OURS).remove()
    kafka.fault("Fetch", error=OURS)
    kafka.fault("Fetch", error=OURS, may_miss=True)
    with pytest.raises(AssertionError) as raised:
        kafka.close()
    assert str(raised.value).count("never acted") == 2
    kafka.close()
    with pytest.raises(ClosedError, match="the cluster was closed"):
        kafka.fault("Fetch", error=OURS)
    with Kafka() as empty:
        pass
    with pytest.raises(ClosedError):
        empty.fault("Fetch", error=OURS)


def test_a_failing_test_keeps_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError), Kafka() as kafka:
        kafka.fault("Fetch", error=OURS)
        raise ZeroDivisionError
    with (
        pytest.raises(ZeroDivisionError),
        Kafka() as kafka,
        kafka.fault("Fetch", error=OURS),
    ):
        raise ZeroDivisionError


def test_the_list_has_the_rules_and_clears_them(kafka: Kafka, ask: Ask) -> None:
    first = kafka.fault("Heartbeat", error=OURS, always=True)
    second = kafka.fault("SyncGroup", error=OURS)
    assert list(kafka.faults) == [first, second]
    assert len(kafka.faults) == 2
    assert "'Heartbeat', error='CLUSTER_AUTHORIZATION_FAILED', always" in repr(kafka.faults)
    ask(heartbeat())
    with pytest.raises(AssertionError, match="SyncGroup"):
        kafka.faults.clear()
    assert not list(kafka.faults)
    assert code(ask(heartbeat())) != OURS
    kafka.fault("SyncGroup", error=OURS)
    kafka.faults.clear(may_miss=True)
    assert first.is_removed


def test_waits_end_at_a_hit_or_say_what_was_near(kafka: Kafka, ask: Ask) -> None:
    fault = kafka.fault("Heartbeat", error=NotCoordinator, times=2)
    ask(heartbeat())
    fault.wait()
    with pytest.raises(TimedOut, match=r"acted 1 times(.|\n)*waited 0\.01 s for 2 hits"):
        fault.wait(2, timeout=0.01)

    async def main() -> None:
        waiting = asyncio.ensure_future(fault.wait_async(2))
        await asyncio.sleep(0)
        ask(heartbeat())
        await waiting
        with pytest.raises(TimedOut):
            await fault.wait_async(3, timeout=0.01)

    asyncio.run(main())
    fault.remove()


def test_a_rule_that_is_removed_while_a_fetch_waits_leaves_the_answer_alone() -> None:
    with Kafka(topics={"t": 1}) as kafka:
        topic_id = kafka.broker(1).core.image.topics_by_name["t"].topic_id
        places = [FetchPartition(partition=0, partition_max_bytes=1_000)]
        fetch = FetchRequest(
            topics=[FetchTopic(topic_id=topic_id, partitions=places)],
            min_bytes=1,
            max_wait_ms=60_000,
        )
        fault = kafka.fault("Fetch", action="corrupt-crc", may_miss=True)
        context = RequestContext(ApiKey.FETCH, 17)
        waiting = kafka.broker(1).core.handle(context, fetch)
        assert isinstance(waiting, Pending)
        fault.remove()
        kafka.producer().send("t", b"x").result()
        assert kafka.cluster.runtime.scheduler.wait(waiting, 5_000)
        records = waiting.result().responses[0].partitions[0].records
        assert RecordBatch(memoryview(bytes(records))).is_valid_crc()
        assert fault.hits == 0


# Refusals


@pytest.mark.parametrize(
    ("apis", "given", "message"),
    [
        (("Produc",), {"error": 1}, "no such API; did you mean 'Produce'"),
        (("produce",), {"error": 1}, "did you mean 'Produce'"),
        (("LeaderAndIsr",), {"error": 1}, "do not serve this API"),
        (("Fetch",), {"error": "NOT_LEADER_OR_FOLOWER"}, "did you mean 'NOT_LEADER_OR_FOLLOWER'"),
        (("Fetch",), {"error": 0}, "error=0: expected Kafka's name"),
        (("Fetch",), {"error": 4711}, "error=4711: expected Kafka's name"),
        (("Fetch",), {"error": ValueError}, "expected Kafka's name of an error"),
        (("Fetch",), {"errer": 1}, "no such argument; did you mean 'error'"),
        (("Fetch",), {"error": 1, "topics": "t"}, "did you mean 'topic'"),
        (("Fetch",), {}, "one of error=, action= and answer=, and got nothing"),
        (("Fetch",), {"error": 1, "action": "cut"}, "got error and action"),
        (("Fetch",), {"action": "cutt"}, "no such action; did you mean 'cut"),
        (("Fetch",), {"action": "error"}, "no such action"),
        (("Fetch",), {"action": "delay"}, "'delay' needs seconds=, a number above 0, and got None"),
        (("Fetch",), {"action": "delay", "seconds": -1}, "got -1"),
        (("Fetch",), {"action": "throttle"}, "needs ms="),
        (("Fetch",), {"action": "cut", "seconds": 1}, "'cut' does not take it; these do: delay"),
        (("Metadata",), {"action": "wrong-epoch", "by": 0}, "by=0"),
        (("Heartbeat",), {"action": "corrupt-crc"}, "cannot do it; these can: Fetch, Produce"),
        (("Fetch",), {"action": "stale-metadata"}, "Fetch cannot do it"),
        (("Heartbeat",), {"topic": "t", "error": 1}, "a Heartbeat request has no such field"),
        (("Produce",), {"group": "g", "error": 1}, "it has topic, partition, transactional_id"),
        ((), {"error": 1}, "needs the name of an API, or a matcher"),
        ((), {"group": "g", "resource": "t", "error": 1}, "no API has group and resource"),
        (("Fetch",), {"topic": 1, "error": 1}, "topic=1: expected a name"),
        (("Fetch",), {"topic": "t", "partition": -1, "error": 1}, "partition=-1"),
        (("Fetch",), {"versions": (3, 1), "error": 1}, "versions="),
        (("Fetch",), {"versions": 99, "error": 1}, "of Fetch, brokers serve 0 to 18"),
        (("Fetch",), {"node": 9, "error": 1}, "no such broker; known are 1, 2"),
        (("Produce",), {"internal": True, "error": 1}, "brokers send each other no Produce"),
        (("Fetch",), {"where": 1, "error": 1}, "where=1: expected a function"),
        (("Fetch",), {"answer": 1}, "answer=1: expected a function"),
        (("Fetch",), {"error": 1, "times": 0}, "times=0"),
        (("Fetch",), {"error": 1, "nth": True}, "nth=True"),
        (("Fetch",), {"error": 1, "chance": 2}, "chance=2"),
        (("Fetch",), {"error": 1, "seed": 2}, "only chance= needs a seed"),
        (("Fetch",), {"error": 1, "always": True, "times": 2}, "not together"),
        (("Fetch",), {"error": 1, "once": True, "times": 2}, "not together"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_at_once(
    kafka: Kafka, apis: Any, given: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        kafka.fault(*apis, **given)
    assert message in str(raised.value)
    assert not list(kafka.faults)


def test_a_black_hole_needs_a_client(kafka: Kafka) -> None:
    with pytest.raises(ConfigError, match="whose requests vanish"):
        kafka.blackhole(group="g")
    with pytest.raises(ConfigError, match="did you mean 'client_id'"):
        kafka.hold("Fetch", client="x")  # type: ignore[call-arg]
