"""`Frame`: the bytes of a request or an answer, as they are on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embedlog.testing.interception import Call
from wire.connection import ClientConnection, ServerConnection


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame with its size, and where it went."""

    at_us: int
    peer: str
    """`host:port` of the client; empty for clients in this process."""
    node_id: int
    is_answer: bool
    data: bytes
    api_key: int
    version: int
    correlation_id: int


def request_frame(call: Call, peer: str, at_us: int) -> Frame:
    """Return the frame of a request, encoded again from the decoded request."""
    context = call.context
    connection = ClientConnection(context.client_id)
    connection.next_correlation_id = context.correlation_id
    buffers = connection.send(call.request, context.api_version, expect_response=False)
    return Frame(
        at_us=at_us,
        peer=peer,
        node_id=call.broker.node_id,
        is_answer=False,
        data=b"".join(map(bytes, buffers)),
        api_key=context.api_key,
        version=context.api_version,
        correlation_id=context.correlation_id,
    )


def answer_frame(request: Frame, answer: Any, at_us: int) -> Frame:
    """Return the frame of the answer to a request."""
    buffers = ServerConnection().respond(
        request.correlation_id, request.api_key, request.version, answer
    )
    return Frame(
        at_us=at_us,
        peer=request.peer,
        node_id=request.node_id,
        is_answer=True,
        data=b"".join(map(bytes, buffers)),
        api_key=request.api_key,
        version=request.version,
        correlation_id=request.correlation_id,
    )
