"""What follows a template equals, byte for byte, what the encoder makes; so do the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.connection import ClientConnection, ServerConnection
from wire.produce_template import _MARK, ProduceTarget, ProduceTemplate, template_version
from wire.schemas.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

ID = bytes(range(16))
SERVER = ServerConnection()
VERSIONS = st.integers(9, 13)
INT64 = st.integers(-(2**63), 2**63 - 1)


def _target(name: str = "t", index: int = 0, acks: int = -1) -> ProduceTarget:
    return ProduceTarget(name=name, topic_id=ID, index=index, acks=acks, timeout_ms=30_000)


def _answer(version: int, correlation_id: int, response: ProduceResponse) -> memoryview:
    return memoryview(b"".join(SERVER.respond(correlation_id, 0, version, response)))[4:]


def _good(offset: int, version: int = 13, *, log_start: int = 0) -> ProduceResponse:
    part = PartitionProduceResponse(index=0, base_offset=offset, log_start_offset=log_start)
    name = {"name": "t"} if version < 13 else {"topic_id": ID}
    topic = TopicProduceResponse(**name, partition_responses=[part])
    return ProduceResponse(responses=[topic])


@given(
    version=VERSIONS,
    client_id=st.one_of(st.none(), st.text(max_size=40)),
    name=st.text(min_size=1, max_size=200),
    index=st.integers(0, 2**31 - 1),
    acks=st.sampled_from([-1, 1]),
    sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=5),
)
def test_requests_are_those_of_the_encoder(
    version: int, client_id: str | None, name: str, index: int, acks: int, sizes: list[int]
) -> None:
    target = _target(name, index, acks)
    template = ProduceTemplate(target, version, client_id)
    general, quick = ClientConnection(client_id), ClientConnection(client_id)
    for size in sizes:
        records = b"r" * size
        whole = b"".join(general.send(target.message(records), version))
        assert b"".join(quick.send_records(template, records)) == whole


@given(
    version=VERSIONS,
    offsets=st.lists(INT64, min_size=1, max_size=4),
    # Where the mark is a number of the answer itself, nobody knows which is which: all is decoded.
    log_start=INT64.filter(lambda number: number != _MARK),
)
def test_a_good_answer_is_its_base_offset_from_the_second_on(
    version: int, offsets: list[int], log_start: int
) -> None:
    connection = ClientConnection("me")
    template = ProduceTemplate(_target(), version, "me")
    for number, offset in enumerate([7, *offsets]):
        connection.send_records(template, b"records")
        frame = _answer(version, number, _good(offset, version, log_start=log_start))
        wanted = offset if number else _good(7, version, log_start=log_start)
        assert connection.receive(frame) == (number, wanted)


def _rename(topic: TopicProduceResponse) -> None:
    topic.name, topic.topic_id = (topic.name and "u"), bytes(16)


_OTHERS: dict[str, Callable[[Any, Any], object]] = {
    "an error": lambda part, whole: setattr(part, "error_code", 6),
    "its time of appending": lambda part, whole: setattr(part, "log_append_time_ms", 5),
    "a message": lambda part, whole: setattr(part, "error_message", "m"),
    "record errors": lambda part, whole: part.record_errors.append(BatchIndexAndErrorMessage()),
    "a leader": lambda part, whole: setattr(part, "current_leader", LeaderIdAndEpoch(leader_id=3)),
    "a throttle": lambda part, whole: setattr(whole, "throttle_time_ms", 9),
    "nodes": lambda part, whole: whole.node_endpoints.append(NodeEndpoint(host="h")),
    "another topic": lambda part, whole: _rename(whole.responses[0]),
    "another partition": lambda part, whole: setattr(part, "index", 1),
    "two": lambda part, whole: whole.responses[0].partition_responses.append(part),
    "none": lambda part, whole: whole.responses.clear(),
}


@pytest.mark.parametrize("version", [10, 12, 13])
@pytest.mark.parametrize("what", _OTHERS)
def test_an_answer_that_says_more_is_decoded(version: int, what: str) -> None:
    connection = ClientConnection("me")
    template = ProduceTemplate(_target(), version, "me")
    for number in range(4):
        connection.send_records(template, b"records")
        response = _good(5, version)
        if number % 2:
            _OTHERS[what](response.responses[0].partition_responses[0], response)
        _, found = connection.receive(_answer(version, number, response))
        assert found == (5 if number == 2 else response)


def test_what_has_tagged_fields_nobody_knows_is_not_learnt() -> None:
    template = ProduceTemplate(_target(), 13, "me")
    response = _good(5)
    response.responses[0].unknown_tags = {77: b"x"}
    frame = _answer(13, 0, response)
    template.learn(frame, response)
    assert template.base_offset(frame) is None


def test_answers_that_differ_each_time_are_soon_learnt_no_more() -> None:
    template = ProduceTemplate(_target(), 13, "me")
    for start in range(8):
        frame = _answer(13, 0, _good(5, log_start=start))
        assert template.base_offset(frame) is None
        template.learn(frame, _good(5, log_start=start))
    frame = _answer(13, 0, _good(5, log_start=100))
    template.learn(frame, _good(5, log_start=100))
    assert template.base_offset(frame) is None


def test_old_brokers_get_messages() -> None:
    assert template_version(None) is None
    assert template_version((0, 8)) is None
    assert template_version((0, 9)) == 9
    assert template_version((3, 99)) == 13
    assert template_version((14, 20)) is None
