"""Header versions and their bytes."""

from __future__ import annotations

import pytest

import wire
from wire import headers
from wire.api_keys import NAMES, ApiKey
from wire.schemas.headers import RequestHeader, ResponseHeader

FLEXIBLE = (ApiKey.PRODUCE, 9)
OLD = (ApiKey.PRODUCE, 8)


@pytest.mark.parametrize(
    ("api_key", "version", "request_version", "response_version"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.FETCH, 11, 1, 0),
        (ApiKey.FETCH, 12, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.API_VERSIONS, 99, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 2, 1),
    ],
)
def test_header_versions(
    api_key: int, version: int, request_version: int, response_version: int
) -> None:
    assert headers.request_header_version(api_key, version) == request_version
    assert headers.response_header_version(api_key, version) == response_version


@pytest.mark.parametrize("client_id", [None, "", "client", "ü" * 300])
@pytest.mark.parametrize(("api_key", "version"), [OLD, FLEXIBLE])
def test_request_headers_equal_the_declaration(
    api_key: int, version: int, client_id: str | None
) -> None:
    data = headers.encode_request_header(
        api_key=api_key, api_version=version, correlation_id=-5, client_id=client_id
    )
    declared = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=-5,
        client_id=client_id,
    )
    assert data == wire.encode(declared, headers.request_header_version(api_key, version))
    assert headers.decode_request_header(data + b"body") == (
        api_key,
        version,
        -5,
        client_id,
        len(data),
    )


@pytest.mark.parametrize(("api_key", "version"), [OLD, FLEXIBLE])
def test_response_headers_equal_the_declaration(api_key: int, version: int) -> None:
    data = headers.encode_response_header(api_key=api_key, api_version=version, correlation_id=7)
    header_version = headers.response_header_version(api_key, version)
    assert data == wire.encode(ResponseHeader(correlation_id=7), header_version)
    assert headers.decode_correlation_id(data) == 7
    position = headers.response_body_position(data, api_key=api_key, api_version=version)
    assert position == len(data)


def test_tagged_fields_of_headers_are_skipped() -> None:
    request = bytes.fromhex("0000 0009 00000001 0001 63 02 00 03 aabbcc 05 00") + b"body"
    assert headers.decode_request_header(request) == (0, 9, 1, "c", len(request) - 4)
    response = bytes.fromhex("00000001 01 00 02 aabb") + b"body"
    position = headers.response_body_position(response, api_key=0, api_version=9)
    assert response[position:] == b"body"


def test_a_client_id_of_length_minus_two_is_null() -> None:
    assert headers.decode_request_header(bytes.fromhex("0012 0000 00000001 fffe"))[3] is None


def test_a_client_id_that_is_not_utf8_is_replaced() -> None:
    assert headers.decode_request_header(bytes.fromhex("0012 0000 00000001 0001 ff"))[3] == "�"


@pytest.mark.parametrize("api_key", [4, 7, 58, 95, 999, -1])
def test_unknown_keys_have_a_readable_header(api_key: int) -> None:
    data = api_key.to_bytes(2, "big", signed=True) + bytes.fromhex("0003 00000009 0001 63")
    assert headers.decode_request_header(data) == (api_key, 3, 9, "c", len(data))


@pytest.mark.parametrize(
    "text",
    ["", "0000", "0000 0009 00000001", "0000 0009 00000001 0005 63", "0000 0009 00000001 0001 63"],
)
def test_headers_that_are_cut_off_are_malformed(text: str) -> None:
    with pytest.raises(wire.MalformedMessage):
        headers.decode_request_header(bytes.fromhex(text))


def test_responses_that_are_cut_off_are_malformed() -> None:
    with pytest.raises(wire.MalformedMessage):
        headers.decode_correlation_id(b"abc")
    with pytest.raises(wire.MalformedMessage):
        headers.response_body_position(b"abcd", api_key=0, api_version=9)


def test_keys_without_messages_are_unknown() -> None:
    without = {key for key in NAMES if key not in wire.registry.API_KEYS}
    assert {4, 5, 6, 7} < without
    for key in without:
        with pytest.raises(wire.UnknownApi):
            wire.request_class(key)


def test_a_client_id_that_passes_the_end_is_malformed() -> None:
    with pytest.raises(wire.MalformedMessage, match="client id of 100 bytes"):
        headers.decode_request_header(bytes.fromhex("0012 0000 00000005 0064 61"))
