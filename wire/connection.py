"""Both ends of a Kafka connection, without I/O: frames to messages, and messages to frames.

Neither end touches a socket, waits or reads a clock: the caller sends and receives the frames. The
server must answer requests in the order of their arrival.
"""

from __future__ import annotations

from wire.api_keys import NAMES, ApiKey
from wire.compiler import decode, decode_from, encode_into
from wire.error_codes import ErrorCode
from wire.errors import MessageTooLarge, RemoteProtocolError
from wire.framing import frame_pieces
from wire.headers import (
    decode_correlation_id,
    decode_request_header,
    encode_request_header,
    encode_response_header,
    response_body_position,
)
from wire.registry import request_class, response_class
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wire.schema import Payload

CORRELATION_ID_MAX = 2**31 - 1


class UnexpectedResponse(RemoteProtocolError):
    """A response that does not answer the oldest request in flight."""


class ClientConnection:
    """The client's end: encodes requests, and decodes responses in the order of the requests.

    Correlation ids count up from 0; `next_correlation_id` is the id of the next request.
    """

    __slots__ = ("_in_flight", "client_id", "next_correlation_id")

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self.next_correlation_id = 0
        # Correlation id -> (API key, version), in the order of sending.
        self._in_flight: dict[int, tuple[int, int]] = {}

    def send(self, request: Any, version: int, *, expect_response: bool = True) -> list[Payload]:
        """Return the frame of a request. Large payloads in it are the request's own objects.

        Pass `expect_response=False` for a Produce request with acks=0, which gets no answer.

        Raises as `wire.encode` does. A request that raises does not count as sent.
        """
        api_key = declaration(type(request)).api
        assert api_key is not None, request
        correlation_id = self.next_correlation_id
        head = encode_request_header(
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=self.client_id,
        )
        frame = _framed(head, request, version)
        self.next_correlation_id = (correlation_id + 1) & CORRELATION_ID_MAX
        if expect_response:
            self._in_flight[correlation_id] = api_key, version
        return frame

    def receive(self, frame: Payload) -> tuple[int, Any]:
        """Decode the frame of a response; return (correlation id, response).

        Raises:
            UnexpectedResponse: the frame does not answer the oldest request in flight.
            MalformedMessage: the frame does not hold the expected response.
        """
        correlation_id = decode_correlation_id(frame)
        oldest = next(iter(self._in_flight), None)
        if correlation_id != oldest:
            raise UnexpectedResponse(f"response {correlation_id}, expected was {oldest}")
        api_key, version = self._in_flight.pop(correlation_id)
        position = response_body_position(frame, api_key=api_key, api_version=version)
        if api_key == ApiKey.API_VERSIONS and _is_version_refused(frame, position):
            version = 0
        return correlation_id, decode(response_class(api_key), version, frame, position)


def _is_version_refused(frame: Payload, position: int) -> bool:
    # A broker that does not know the requested version of ApiVersions answers in v0.
    code = int.from_bytes(frame[position : position + 2], "big")
    return code == ErrorCode.UNSUPPORTED_VERSION


class ServerConnection:
    """The server's end: parses requests, and returns the frames of responses. Stateless."""

    __slots__ = ()

    def parse(self, frame: Payload) -> RequestFrame:
        """Read the header of a request.

        The API key and version may be any numbers: the caller must check them before it decodes
        the body.

        Raises:
            MalformedMessage: the frame ends inside the header.
        """
        return RequestFrame(frame)

    def respond(
        self,
        correlation_id: int,
        api_key: int,
        version: int,
        response: Any,
        *,
        size_max: int | None = None,
    ) -> list[Payload]:
        """Return the frame of a response. Large payloads in it are the response's own objects.

        Raises:
            MessageTooLarge: the response has more than `size_max` bytes.
            InvalidMessage, UnknownVersion: as `wire.encode`.
        """
        head = encode_response_header(
            api_key=api_key, api_version=version, correlation_id=correlation_id
        )
        if size_max is None:
            return _framed(head, response, version)
        return _framed_within(size_max, head, response, version)


class RequestFrame:
    """A request with a decoded header. Its body, still encoded, starts at `position` of `frame`."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "frame", "position")

    def __init__(self, frame: Payload) -> None:
        self.frame = frame
        (
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.position,
        ) = decode_request_header(frame)

    def __repr__(self) -> str:
        name = NAMES.get(self.api_key, f"API {self.api_key}")
        return f"<{name} v{self.api_version} #{self.correlation_id} from {self.client_id!r}>"

    def decode(self) -> Any:
        """Return the request.

        Raises:
            UnknownApi: there are no messages for the API key.
            UnknownVersion: the API has no such version.
            MalformedMessage: the body is malformed.
        """
        cls = request_class(self.api_key)
        return decode_from(cls, self.api_version, self.frame, self.position)[0]


def _framed_within(size_max: int, head: bytes, message: Any, version: int) -> list[Payload]:
    # Imported on first use, so that processes that encode no message do not load the generators.
    from wire.encoder import LimitedPieces

    out = LimitedPieces(size_max)
    out.append(head)
    buffers: list[Payload] = []
    encode_into(message, version, out, buffers)
    if sum(map(len, out)) + sum(map(len, buffers)) > size_max:
        raise MessageTooLarge(size_max)
    return frame_pieces(out, buffers)


def _framed(head: bytes, message: Any, version: int) -> list[Payload]:
    out: list[Payload] = [head]
    buffers: list[Payload] = []
    encode_into(message, version, out, buffers)
    return frame_pieces(out, buffers)
