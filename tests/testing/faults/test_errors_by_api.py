"""Errors of rules at every API, in every version: each has a place where a client finds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker import dispatch
from embedlog.broker.context import RequestContext
from embedlog.common import ZERO_UUID
from embedlog.runtime.pending import Pending
from embedlog.testing import Kafka
from embedlog.testing.faults.paths import TOPIC, kinds_of, path_of
from tests.golden.batches import simple
from wire.api_keys import NAMES, ApiKey
from wire.compiler import encode
from wire.error_codes import ErrorCode
from wire.registry import request_class, response_class
from wire.schema import Message
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

NO_CODE_BEFORE = {ApiKey.DESCRIBE_LOG_DIRS: 3}
CODE = ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"a": 2, "b": 2}) as made:
        yield made


def ask(kafka: Kafka, request: Any, version: int) -> Any:
    """Return the answer of the broker's door."""
    key = type(request).__declaration__.api
    context = RequestContext(key, version, client_id="c")
    answer = kafka.cluster.broker().core.handle(context, request)
    if isinstance(answer, Pending):
        assert kafka.cluster.runtime.scheduler.wait(answer, 5_000)
        return answer.result()
    return answer


def codes(message: Any) -> list[int]:
    """Return every error code of an answer that is not 0, at any depth."""
    found: list[int] = []
    for field in message.__fields__:
        value = getattr(message, field.name)
        if field.name in {"error_code", "partition_error_code"} and value:
            found.append(value)
        elif isinstance(value, list):
            found += [code for each in value if isinstance(each, Message) for code in codes(each)]
    return found


def full_request(kafka: Kafka, api_key: int, version: int) -> Any:
    """Return a request that names an item of each kind, as far as the API has items."""
    made = request_class(api_key)()
    topic_id = kafka.cluster.broker().core.image.topics_by_name["a"].topic_id
    _fill(made, version, topic_id)
    if api_key in {ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH}:
        made.replica_id = -1
    if api_key == ApiKey.PRODUCE:
        made.acks = 1
    return made


def _fill(message: Any, version: int, topic_id: bytes) -> None:
    for field in message.__fields__:
        if not field.exists(version) or field.name == "forgotten_topics_data":
            continue
        if field.name == "topic_id":
            message.topic_id = topic_id
        elif field.name in {"name", "topic", "group_id", "transactional_id", "key"}:
            setattr(message, field.name, "a")
        elif field.kind == "array":
            struct = field.element.struct
            if struct is None:
                value: Any = {"string": "a", "int32": 0}.get(field.element.kind)
                setattr(message, field.name, [] if value is None else [value])
            else:
                inner = struct()
                _fill(inner, version, topic_id)
                setattr(message, field.name, [inner])


VERSIONS = [
    (key, version)
    for key, (first, last) in dispatch.VERSIONS.items()
    for version in range(max(first, NO_CODE_BEFORE.get(key, 0)), last + 1)
]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_api_can_answer_with_an_error_in_every_version(kafka: Kafka, every: int) -> None:
    for key, version in VERSIONS[::every]:
        request = full_request(kafka, key, version)
        internal = key == ApiKey.ADD_PARTITIONS_TO_TXN and version >= 4
        if key == ApiKey.DELETE_TOPICS and version >= 6:
            request.topics[0].name = None
        with kafka.fault(NAMES[key], error=CODE, internal=internal) as fault:
            answer = ask(kafka, request, version)
        assert set(codes(answer)) == {CODE}, (NAMES[key], version, answer)
        assert type(answer) is response_class(key)
        assert encode(answer, version)
        assert fault.hits == 1


PARTITION_APIS = {
    ApiKey.PRODUCE: "base_offset",
    ApiKey.FETCH: "high_watermark",
    ApiKey.LIST_OFFSETS: "offset",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "end_offset",
    ApiKey.DELETE_RECORDS: "low_watermark",
}


def _two_partitions(kafka: Kafka, key: int, version: int) -> Any:
    """Return a request for the partitions 0 and 1 of topic a."""
    request = full_request(kafka, key, version)
    topics = request.topic_data if key == ApiKey.PRODUCE else request.topics
    list_name = "partition_data" if key == ApiKey.PRODUCE else "partitions"
    index = "index" if key == ApiKey.PRODUCE else "partition"
    if key in {ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS}:
        index = "partition_index"
    made_by = type(getattr(topics[0], list_name)[0])
    both = [made_by(**{index: number}) for number in (0, 1)]
    setattr(topics[0], list_name, both)
    if key == ApiKey.PRODUCE:
        request.acks = -1
        for each in both:
            each.records = simple(b"x")
    return request


@pytest.mark.parametrize("key", PARTITION_APIS, ids=lambda key: NAMES[key])
def test_an_error_is_put_only_at_the_partition_of_the_rule(kafka: Kafka, key: int) -> None:
    for version in (dispatch.VERSIONS[key][1], max(3, dispatch.VERSIONS[key][0])):
        version = min(version, dispatch.VERSIONS[key][1])
        request = _two_partitions(kafka, key, version)
        with kafka.fault(NAMES[key], topic="a", partition=1, error="KAFKA_STORAGE_ERROR"):
            answer = ask(kafka, request, version)
        topics = answer.responses if key in {ApiKey.PRODUCE, ApiKey.FETCH} else answer.topics
        is_produce = key == ApiKey.PRODUCE
        partitions = topics[0].partition_responses if is_produce else topics[0].partitions
        shown = {_index(each): each for each in partitions}
        assert shown[0].error_code == 0
        assert shown[1].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert getattr(shown[1], PARTITION_APIS[key]) == -1
        assert encode(answer, version)


def _index(partition: Any) -> int:
    names = ("index", "partition_index", "partition")
    index: int = next(getattr(partition, name) for name in names if hasattr(partition, name))
    return index


WITH_TOPICS = [place for place in VERSIONS if TOPIC in kinds_of(place[0])]


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_api_puts_an_error_only_at_the_topic_of_the_rule(kafka: Kafka, every: int) -> None:
    for key, version in WITH_TOPICS[::every]:
        path = path_of(key, version)
        request = full_request(kafka, key, version)
        internal = key == ApiKey.ADD_PARTITIONS_TO_TXN and version >= 4
        _name_both_topics(kafka, request, [level.request for level in path])
        with kafka.fault(NAMES[key], topic="b", error=CODE, internal=internal):
            answer = ask(kafka, request, version)
        found = _codes_by_topic(kafka, answer, [each.response for each in path if each.response])
        assert found["b"] == {CODE}, (NAMES[key], version, answer)
        assert CODE not in found.get("a", ()), (NAMES[key], version, answer)
        assert encode(answer, version)


def _name_both_topics(kafka: Kafka, request: Any, lists: list[str]) -> None:
    """Add topic b to a request that names topic a."""
    while lists[0] in {"markers", "dirs", "groups", "transactions"}:
        request = getattr(request, lists.pop(0))[0]
    topics = getattr(request, lists[0])
    if topics == ["a"]:
        topics.append("b")
        return
    values = {field.name: getattr(topics[0], field.name) for field in topics[0].__fields__}
    for name in ("name", "topic", "topic_name"):
        if name in values and values[name]:
            values[name] = "b"
    if values.get("topic_id", ZERO_UUID) != ZERO_UUID:
        image = kafka.cluster.broker().core.image
        values["topic_id"] = image.topics_by_name["b"].topic_id
    topics.append(type(topics[0])(**values))


def _codes_by_topic(kafka: Kafka, message: Any, lists: list[str]) -> dict[str, set[int]]:
    """Return the error codes of the topics, at any depth."""
    found: dict[str, set[int]] = {}
    for element in getattr(message, lists[0]):
        names = ("name", "topic", "topic_name")
        name = next((getattr(element, each) for each in names if hasattr(element, each)), None)
        if name is None and not hasattr(element, "topic_id"):
            found |= _codes_by_topic(kafka, element, lists[1:])
        else:
            name = name or kafka.cluster.broker().core.topic_name(element.topic_id)
            found.setdefault(name, set()).update(codes(element))
    return found


def test_a_transaction_gets_no_partition_if_one_is_refused(kafka: Kafka) -> None:
    request = full_request(kafka, ApiKey.ADD_PARTITIONS_TO_TXN, 3)
    _name_both_topics(kafka, request, ["v3_and_below_topics"])
    with kafka.fault("AddPartitionsToTxn", topic="b", error="TOPIC_AUTHORIZATION_FAILED"):
        answer = ask(kafka, request, 3)
    assert _codes_by_topic(kafka, answer, ["results_by_topic_v3_and_below"]) == {
        "a": {ErrorCode.OPERATION_NOT_ATTEMPTED},
        "b": {ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    }


@pytest.mark.parametrize("version", [0, 1, 9, 13])
@pytest.mark.parametrize("asks", ["by name", "for all"])
def test_metadata_has_the_error_at_its_topic_and_still_the_brokers(
    kafka: Kafka, version: int, asks: str
) -> None:
    names = [MetadataRequestTopic(name="a"), MetadataRequestTopic(name="b")]
    everything = [] if version == 0 else None
    request = MetadataRequest(topics=names if asks == "by name" else everything)
    with kafka.fault("Metadata", topic="a", error="UNKNOWN_TOPIC_OR_PARTITION"):
        answer = ask(kafka, request, version)
    found = {topic.name: topic for topic in answer.topics}
    assert found["a"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not found["a"].partitions
    assert found["b"].error_code == 0
    assert len(found["b"].partitions) == 2
    assert answer.brokers


def test_metadata_has_the_error_at_one_partition(kafka: Kafka) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    with kafka.fault("Metadata", topic="a", partition=1, error="LEADER_NOT_AVAILABLE"):
        answer = ask(kafka, request, 12)
    first, second = sorted(answer.topics[0].partitions, key=lambda each: each.partition_index)
    assert (first.error_code, first.leader_id >= 0) == (0, True)
    assert (second.error_code, second.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_metadata_has_the_wish_for_a_new_bootstrap_at_the_top(kafka: Kafka) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    with kafka.fault("Metadata", error="REBOOTSTRAP_REQUIRED"):
        answer = ask(kafka, request, 13)
    assert answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
