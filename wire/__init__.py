"""The Kafka protocol as a library of bytes: it knows no socket, no clock and no log.

    api_keys, error_codes     the protocol's two number spaces, as plain ints
    schemas/                  all messages, declared as data; `registry` finds them by API key
    schema                    the language of those declarations
    layout, encoder, decoder  from a declaration to generated functions; `compiler` calls them
    interpreter               encodes rare messages without generating code
    headers                   request and response headers, before the message in a frame
    framing, connection       bytes in, requests or responses out, for clients and servers
    records/                  record batches, which messages carry as payload
    net/                      sockets; nothing else here touches one

One class represents a message in all versions; the caller names the version when encoding:

>>> import wire
>>> from wire.schemas.find_coordinator import FindCoordinatorRequest
>>> request = FindCoordinatorRequest(key="my-group")
>>> wire.encode(request, 0)
b'\\x00\\x08my-group'
>>> wire.decode(FindCoordinatorRequest, 0, wire.encode(request, 0)) == request
True
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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

_HOMES = {
    "InvalidMessage": "wire.errors",
    "LATEST": "wire.registry",
    "MalformedMessage": "wire.errors",
    "Payload": "wire.schema",
    "RemoteProtocolError": "wire.errors",
    "UnknownApi": "wire.errors",
    "UnknownVersion": "wire.errors",
    "UnsupportedField": "wire.errors",
    "declaration": "wire.schema",
    "decode": "wire.compiler",
    "decode_from": "wire.compiler",
    "encode": "wire.compiler",
    "encode_buffers": "wire.compiler",
    "explain": "wire.compiler",
    "request_class": "wire.registry",
    "response_class": "wire.registry",
    "schema_module": "wire.registry",
    "valid_versions": "wire.registry",
}
"""The module of each name. A program of one process sends objects and never loads the codecs."""


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(home, fromlist=[name])
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
