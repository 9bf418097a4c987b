"""The Kafka protocol as a library of bytes: it knows no socket, no clock and no log.

    api_keys, error_codes     the protocol's two number spaces, as plain ints
    schemas/                  all messages, declared as data; `registry` finds them by API key
    schema                    the language of those declarations
    layout, encoder, decoder  from a declaration to generated functions; `compiler` calls them
    headers                   what precedes a message in a frame
    framing, connection       bytes in, requests or responses out, for clients and servers
    records/                  record batches, which are payload to the messages
    net/                      sockets; nothing else here touches one

A message is an object of one class for all versions; the version is named when it is encoded:

>>> from wire.schemas.find_coordinator import FindCoordinatorRequest
>>> request = FindCoordinatorRequest(key="my-group")
>>> encode(request, 0)
b'\\x00\\x08my-group'
>>> decode(FindCoordinatorRequest, 0, encode(request, 0)) == request
True
"""

from __future__ import annotations

from wire.compiler import decode, decode_from, encode, encode_buffers, explain
from wire.errors import (
    InvalidMessage,
    MalformedMessage,
    RemoteProtocolError,
    UnknownApi,
    UnknownVersion,
    UnsupportedField,
)
from wire.registry import LATEST, request_class, response_class, schema_module, valid_versions
from wire.schema import Payload, declaration

__all__ = [
    "LATEST",
    "InvalidMessage",
    "MalformedMessage",
    "Payload",
    "RemoteProtocolError",
    "UnknownApi",
    "UnknownVersion",
    "UnsupportedField",
    "declaration",
    "decode",
    "decode_from",
    "encode",
    "encode_buffers",
    "explain",
    "request_class",
    "response_class",
    "schema_module",
    "valid_versions",
]
