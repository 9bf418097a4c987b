"""A client and a server connection talk to each other, without a socket."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from wire.api_keys import ApiKey
from wire.connection import (
    CORRELATION_ID_MAX,
    ClientConnection,
    ServerConnection,
    UnexpectedResponse,
)
from wire.errors import MessageTooLarge
from wire.framing import FrameReader
from wire.schemas.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from wire.schemas.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def through_a_stream(buffers: list[Any]) -> memoryview:
    (frame,) = FrameReader().feed(b"".join(buffers))
    return frame


def exchange(request: Any, version: int, response: Any) -> Any:
    client, server = ClientConnection("me"), ServerConnection()
    received = server.parse(through_a_stream(client.send(request, version)))
    assert received.decode() == request
    assert received.client_id == "me"
    sent = server.respond(received.correlation_id, received.api_key, version, response)
    correlation_id, answer = client.receive(through_a_stream(sent))
    assert correlation_id == received.correlation_id
    with pytest.raises(UnexpectedResponse):
        client.receive(through_a_stream(sent))  # it answers no request any more
    return answer


@pytest.mark.parametrize("version", [0, 3, 4])
def test_a_request_and_its_response(version: int) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    response = HeartbeatResponse(error_code=27)
    assert exchange(request, version, response) == response


@pytest.mark.parametrize("version", [11, 12])
def test_large_payloads_stay_the_callers_objects(version: int) -> None:
    payload = memoryview(bytes(5000))
    partitions = [PartitionData(partition_index=i, records=payload) for i in range(2)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    buffers = ServerConnection().respond(1, ApiKey.FETCH, version, response)
    assert [buffer.obj for buffer in buffers if isinstance(buffer, memoryview)] == [payload.obj] * 2
    assert len(buffers) <= 5
    assert exchange(FetchRequest(), version, response) == response


def test_a_small_message_is_one_buffer() -> None:
    assert len(ClientConnection("me").send(HeartbeatRequest(), 4)) == 1


def test_a_message_may_end_in_its_payload() -> None:
    topics = [
        TopicProduceData(name="t", partition_data=[PartitionProduceData(records=bytes(2000))])
    ]
    buffers = ClientConnection(None).send(ProduceRequest(topic_data=topics), 8)
    assert [len(buffer) for buffer in buffers][1:] == [2000]
    assert int.from_bytes(bytes(buffers[0][:4]), "big") == sum(map(len, buffers)) - 4


def test_api_versions_answers_have_the_oldest_header() -> None:
    response = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=5)])
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert exchange(request, 4, response) == response


def test_a_refused_api_versions_request_is_answered_in_version_0() -> None:
    client, server = ClientConnection(None), ServerConnection()
    received = server.parse(through_a_stream(client.send(ApiVersionsRequest(), 5)))
    refusal = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]
    )
    sent = server.respond(received.correlation_id, received.api_key, 0, refusal)
    assert client.receive(through_a_stream(sent))[1] == refusal


def test_requests_of_any_version_can_be_parsed_but_not_decoded() -> None:
    server = ServerConnection()
    request = server.parse(bytes.fromhex("0012 0063 00000005 0001 61 00 ffff"))
    assert (request.api_key, request.api_version, request.correlation_id) == (18, 99, 5)
    with pytest.raises(wire.UnknownVersion):
        request.decode()
    unknown = server.parse(bytes.fromhex("03e7 0000 00000005 ffff"))
    with pytest.raises(wire.UnknownApi):
        unknown.decode()
    assert repr(request) == "<ApiVersions v99 #5 from 'a'>"
    assert repr(unknown) == "<API 999 v0 #5 from None>"


def test_pipelined_requests_are_answered_in_order() -> None:
    client, server = ClientConnection("me"), ServerConnection()
    ids = []
    for _ in range(3):
        request = server.parse(through_a_stream(client.send(HeartbeatRequest(), 4)))
        ids.append(request.correlation_id)
        assert client.next_correlation_id == request.correlation_id + 1
    for code, number in enumerate(ids):
        sent = server.respond(number, ApiKey.HEARTBEAT, 4, HeartbeatResponse(error_code=code))
        assert client.receive(through_a_stream(sent)) == (
            number,
            HeartbeatResponse(error_code=code),
        )


def test_responses_out_of_order_are_refused() -> None:
    client, server = ClientConnection("me"), ServerConnection()
    client.send(HeartbeatRequest(), 4)
    client.send(HeartbeatRequest(), 4)
    second = server.respond(1, ApiKey.HEARTBEAT, 4, HeartbeatResponse())
    with pytest.raises(UnexpectedResponse):
        client.receive(through_a_stream(second))


def test_a_response_nobody_asked_for_is_refused() -> None:
    sent = ServerConnection().respond(0, ApiKey.HEARTBEAT, 4, HeartbeatResponse())
    with pytest.raises(UnexpectedResponse):
        ClientConnection("me").receive(through_a_stream(sent))


def test_a_request_without_response_is_not_waited_for() -> None:
    client, server = ClientConnection("me"), ServerConnection()
    client.send(ProduceRequest(acks=0), 9, expect_response=False)
    client.send(HeartbeatRequest(), 4)
    sent = server.respond(1, ApiKey.HEARTBEAT, 4, HeartbeatResponse())
    assert client.receive(through_a_stream(sent))[1] == HeartbeatResponse()


def test_a_request_that_cannot_be_encoded_is_not_in_flight() -> None:
    client = ClientConnection("me")
    with pytest.raises(wire.UnsupportedField):
        client.send(HeartbeatRequest(group_instance_id="i"), 0)
    assert client.next_correlation_id == 0
    sent = ServerConnection().respond(0, ApiKey.HEARTBEAT, 4, HeartbeatResponse())
    with pytest.raises(UnexpectedResponse, match="expected was None"):
        client.receive(through_a_stream(sent))


def test_correlation_ids_wrap_before_they_are_negative() -> None:
    client = ClientConnection("me")
    client.next_correlation_id = CORRELATION_ID_MAX
    seen = []
    for _ in range(2):
        frame = through_a_stream(client.send(HeartbeatRequest(), 4))
        seen.append(ServerConnection().parse(frame).correlation_id)
    assert seen == [CORRELATION_ID_MAX, 0]


def test_only_api_versions_is_answered_in_another_version() -> None:
    # The first two bytes of this answer are the code that refuses a version of ApiVersions.
    response = HeartbeatResponse(throttle_time_ms=35 << 16)
    assert exchange(HeartbeatRequest(), 3, response) == response


def test_records_count_for_the_limit_of_a_response() -> None:
    partition = PartitionData(records=bytes(5_000))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    size = sum(map(len, ServerConnection().respond(1, ApiKey.FETCH, 12, response))) - 4
    assert ServerConnection().respond(1, ApiKey.FETCH, 12, response, size_max=size)
    with pytest.raises(MessageTooLarge):
        ServerConnection().respond(1, ApiKey.FETCH, 12, response, size_max=size - 1)
