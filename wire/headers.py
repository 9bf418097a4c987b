"""Request and response headers: their version for each API, and how to read and write them.

    request v1    api key int16, api version int16, correlation id int32, client id string
    request v2    the same (the client id keeps its int16 length), then tagged fields
    response v0   correlation id int32
    response v1   correlation id int32, then tagged fields

Flexible API versions have request v2 and response v1. ApiVersions responses have v0 at every
version: a client that sent a version unknown to the broker must be able to read the answer.
Only ControlledShutdown v0, removed in Kafka 4.0, had request v0, which lacks the client id.
"""

from __future__ import annotations

import struct

from wire.api_keys import ApiKey
from wire.decoder import read_unknown_tags
from wire.errors import MalformedMessage, UnknownApi
from wire.registry import FIRST_FLEXIBLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schema import Payload

_REQUEST = struct.Struct(">hhih")
_REQUEST_SIZE = _REQUEST.size
_RESPONSE = struct.Struct(">i")
_unpack_request = _REQUEST.unpack_from
_pack_response = _RESPONSE.pack
_pack_tagged = struct.Struct(">ix").pack

_FIRST_TAGGED_RESPONSE = {**FIRST_FLEXIBLE, ApiKey.API_VERSIONS: 1 << 15}
"""API key -> the first version with response v1; 1 << 15 is above all versions."""


def request_header_version(api_key: int, version: int) -> int:
    """Return the version of the request header, 1 or 2, for a version of an API.

    >>> request_header_version(ApiKey.PRODUCE, 8), request_header_version(ApiKey.PRODUCE, 9)
    (1, 2)
    """
    return 2 if _is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return the version of the response header, 0 or 1, for a version of an API.

    >>> response_header_version(ApiKey.FETCH, 12), response_header_version(ApiKey.API_VERSIONS, 4)
    (1, 0)
    """
    try:
        return 1 if version >= _FIRST_TAGGED_RESPONSE[api_key] else 0
    except KeyError:
        raise UnknownApi(api_key) from None


def _is_flexible(api_key: int, version: int) -> bool:
    try:
        return version >= FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise UnknownApi(api_key) from None


def encode_request_header(
    *, api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the header of a request."""
    if client_id is None:
        head = _REQUEST.pack(api_key, api_version, correlation_id, -1)
    else:
        name = client_id.encode()
        head = _REQUEST.pack(api_key, api_version, correlation_id, len(name)) + name
    return head + b"\0" if _is_flexible(api_key, api_version) else head


def decode_request_header(frame: Payload) -> tuple[int, int, int, str | None, int]:
    """Return (API key, API version, correlation id, client id, position of the body).

    Tagged fields are skipped. A client id of any negative length is null, as in Kafka. An unknown
    API key is not an error here: the caller may want to log the client id.

    Raises:
        MalformedMessage: the frame ends inside the header.
    """
    try:
        api_key, api_version, correlation_id, size = _unpack_request(frame)
        position = _REQUEST_SIZE
        client_id = None
        if size >= 0:
            position += size
            if position > len(frame):
                raise MalformedMessage(f"client id of {size} bytes passes the end at {len(frame)}")
            client_id = str(frame[_REQUEST_SIZE:position], "utf-8", "replace")
        if api_key in FIRST_FLEXIBLE and api_version >= FIRST_FLEXIBLE[api_key]:
            count = frame[position]
            position += 1
            if count:
                position = read_unknown_tags(frame, position, len(frame), count)[1]
    except (struct.error, IndexError):
        raise MalformedMessage(f"request of {len(frame)} bytes ends inside its header") from None
    return api_key, api_version, correlation_id, client_id, position


def encode_response_header(*, api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Return the header of a response."""
    try:
        is_tagged = api_version >= _FIRST_TAGGED_RESPONSE[api_key]
    except KeyError:
        raise UnknownApi(api_key) from None
    return _pack_tagged(correlation_id) if is_tagged else _pack_response(correlation_id)


def decode_correlation_id(frame: Payload) -> int:
    """Return the correlation id of a response.

    Raises:
        MalformedMessage: the frame is too short.
    """
    if len(frame) < _RESPONSE.size:
        raise MalformedMessage(f"response of {len(frame)} bytes has no correlation id")
    correlation_id: int = _RESPONSE.unpack_from(frame)[0]
    return correlation_id


def response_body_position(frame: Payload, *, api_key: int, api_version: int) -> int:
    """Return where a response's body starts; the header's tagged fields are skipped.

    Raises:
        MalformedMessage: the frame ends inside the header.
    """
    position = _RESPONSE.size
    if not response_header_version(api_key, api_version):
        return position
    if len(frame) <= position:
        raise MalformedMessage(f"response of {len(frame)} bytes ends inside its header")
    count = frame[position]
    if count == 0:
        return position + 1
    return read_unknown_tags(frame, position + 1, len(frame), count)[1]
