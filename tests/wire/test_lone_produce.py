"""What a server knows by its bytes is what the codec reads and writes, of wrong bytes too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wire
from tests.wire.generate import message_strategy
from wire import lone_produce
from wire.connection import ServerConnection
from wire.errors import MalformedMessage
from wire.lone_produce import LoneProduce
from wire.schemas.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSIONS = st.integers(3, 13)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.one_of(st.sampled_from(["a", "b"]), st.text(max_size=140))
IDS = st.sampled_from([bytes(range(16)), bytes(16)])
SIZES = st.one_of(st.integers(0, 300), st.sampled_from([16_381, 16_382, 16_383, 16_384, 70_000]))


def _request(
    version: int, name: str, topic_id: bytes, index: int, records: bytes | None
) -> ProduceRequest:
    topic = {"topic_id": topic_id} if version >= 13 else {"name": name}
    data = PartitionProduceData(index=index, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(**topic, partition_data=[data])]
    )


def _read(read: Any) -> object:
    try:
        return read()
    except MalformedMessage as error:
        return str(error)


def _assert_read_as_by_the_codec(
    lone: LoneProduce, version: int, frame: bytes, position: int
) -> None:
    expected = _read(lambda: wire.decode(ProduceRequest, version, frame, position))
    for buffer in frame, memoryview(frame):
        found = _read(lambda buffer=buffer: lone.decode(version, buffer, position))
        assert found == expected


@pytest.mark.slow
@given(data=st.data(), version=VERSIONS, position=st.integers(0, 40))
def test_requests_are_read_as_by_the_codec(
    data: st.DataObject, version: int, position: int
) -> None:
    lone = LoneProduce()
    for _ in range(data.draw(st.integers(1, 6))):
        request = _request(
            version,
            data.draw(NAMES),
            data.draw(IDS),
            data.draw(st.integers(0, 2)),
            data.draw(st.one_of(st.none(), SIZES.map(bytes))),
        )
        if data.draw(st.integers(0, 4)) == 0:
            request = data.draw(message_strategy(ProduceRequest, version))
        frame = bytes(position) + wire.encode(request, version)
        _assert_read_as_by_the_codec(lone, version, frame, position)


@given(
    version=st.integers(9, 13),
    size=st.sampled_from([100, 126, 127, 128, 200, 16_382, 16_383, 40_000]),
    at=st.floats(0, 1),
    value=st.integers(0, 255),
    end=st.integers(-5, 5),
)
def test_spoilt_requests_are_refused_as_by_the_codec(
    version: int, size: int, at: float, value: int, end: int
) -> None:
    lone = LoneProduce()
    good = wire.encode(_request(version, "topic", bytes(range(16)), 7, bytes(size)), version)
    _assert_read_as_by_the_codec(lone, version, good, 0)
    # Around the records, where a byte means something.
    places = [*range(40), *range(len(good) - 5, len(good))]
    spoilt = bytearray(good)
    spoilt[places[int(at * (len(places) - 1))]] = value
    _assert_read_as_by_the_codec(lone, version, bytes(spoilt), 0)
    _assert_read_as_by_the_codec(lone, version, bytes(spoilt), 0)
    longer = good + bytes(end) if end >= 0 else good[:end]
    _assert_read_as_by_the_codec(lone, version, longer, 0)


@pytest.mark.parametrize("version", [9, 12, 13])
@pytest.mark.parametrize("index", [0, 7])
def test_a_request_that_ends_anywhere_is_refused_as_by_the_codec(version: int, index: int) -> None:
    lone = LoneProduce()
    request = _request(version, "n" * 90, bytes(16), index, bytes(200))
    good = wire.encode(request, version)
    _assert_read_as_by_the_codec(lone, version, good, 0)
    for end in range(len(good)):
        _assert_read_as_by_the_codec(lone, version, good[:end], 0)
    head = good[: len(good) - 200 - 2 - 3]
    for count in range(8):  # no records and no tags, or fewer of these bytes than there must be
        _assert_read_as_by_the_codec(lone, version, head + bytes(count), 0)


@pytest.mark.parametrize("version", [9, 12, 13])
@pytest.mark.parametrize("size", [130, 5_000, 16_382, 16_383, 1_000_000])
def test_from_the_second_on_the_codec_is_not_asked(
    version: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone = LoneProduce()
    frame = wire.encode(_request(version, "topic", bytes(range(16)), 7, bytes(size)), version)
    first = lone.decode(version, frame, 0)
    good = _good(version, 5, -1, 0)
    answer = b"".join(lone.respond(1, version, good))

    def refuse(*_: object) -> None:
        raise AssertionError("the codec was asked")

    monkeypatch.setattr(lone_produce, "decode_from", refuse)
    monkeypatch.setattr(lone_produce, "encode", refuse)
    monkeypatch.setattr(lone_produce, "good_answer", refuse)
    assert lone.decode(version, frame, 0) == first
    assert b"".join(lone.respond(1, version, good)) == answer


def test_what_is_known_is_bounded() -> None:
    lone = LoneProduce(known_max=8)
    for index in range(100):
        frame = wire.encode(_request(12, "topic", bytes(16), index, bytes(200)), 12)
        assert lone.decode(12, frame, 0).topic_data[0].partition_data[0].index == index
        lone.respond(1, 12, _good(12, 0, -1, 0, index=index))
        assert lone.known_count <= 16
    assert lone.known_count == 16


def _good(
    version: int, offset: int, append_time: int, start: int, *, name: str = "t", index: int = 0
) -> ProduceResponse:
    answer = PartitionProduceResponse(
        index=index, base_offset=offset, log_append_time_ms=append_time, log_start_offset=start
    )
    topic = {"topic_id": bytes(range(16))} if version >= 13 else {"name": name}
    answers = TopicProduceResponse(**topic, partition_responses=[answer])
    return ProduceResponse(responses=[answers])


def _assert_written_as_by_the_codec(
    lone: LoneProduce, correlation_id: int, version: int, response: ProduceResponse
) -> None:
    expected = b"".join(ServerConnection().respond(correlation_id, 0, version, response))
    for _ in range(2):
        assert b"".join(lone.respond(correlation_id, version, response)) == expected


@given(
    version=VERSIONS,
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    answers=st.lists(st.tuples(INT64, INT64, INT64, NAMES, st.integers(0, 3)), max_size=4),
)
def test_good_answers_are_written_as_by_the_codec(
    version: int, correlation_id: int, answers: list[tuple[int, int, int, str, int]]
) -> None:
    lone = LoneProduce()
    for offset, append_time, start, name, index in answers:
        response = _good(version, offset, append_time, start, name=name, index=index)
        _assert_written_as_by_the_codec(lone, correlation_id, version, response)


@pytest.mark.slow
@given(data=st.data(), version=st.integers(8, 13))
def test_any_answer_is_written_as_by_the_codec(data: st.DataObject, version: int) -> None:
    lone = LoneProduce()
    _assert_written_as_by_the_codec(lone, 1, version, _good(version, 1, -1, 0))
    response = data.draw(message_strategy(ProduceResponse, version))
    _assert_written_as_by_the_codec(lone, 1, version, response)


def _part(response: ProduceResponse) -> PartitionProduceResponse:
    return response.responses[0].partition_responses[0]


_MORE = {
    "an error": lambda whole: setattr(_part(whole), "error_code", 6),
    "a message": lambda whole: setattr(_part(whole), "error_message", ""),
    "records": lambda whole: _part(whole).record_errors.append(BatchIndexAndErrorMessage()),
    "a leader": lambda whole: setattr(
        _part(whole), "current_leader", LeaderIdAndEpoch(leader_id=3)
    ),
    "a throttle": lambda whole: setattr(whole, "throttle_time_ms", 9),
    "nodes": lambda whole: whole.node_endpoints.append(NodeEndpoint(host="h")),
    "tags of a partition": lambda whole: setattr(_part(whole), "unknown_tags", {9: b"x"}),
    "tags of a topic": lambda whole: setattr(whole.responses[0], "unknown_tags", {9: b"x"}),
    "tags": lambda whole: setattr(whole, "unknown_tags", {9: b"x"}),
    "two partitions": lambda whole: whole.responses[0].partition_responses.append(
        PartitionProduceResponse(index=1)
    ),
    "two topics": lambda whole: whole.responses.append(TopicProduceResponse()),
    "no topic": lambda whole: whole.responses.clear(),
}


@pytest.mark.parametrize("version", [10, 13])
@pytest.mark.parametrize("what", _MORE)
def test_an_answer_that_says_more_is_written_whole(version: int, what: str) -> None:
    lone = LoneProduce()
    _assert_written_as_by_the_codec(lone, 1, version, _good(version, 1, -1, 0))
    response = _good(version, 1, -1, 0)
    _MORE[what](response)
    _assert_written_as_by_the_codec(lone, 1, version, response)
