"""The Kafka protocol as a library: messages and record batches to bytes, and back.

Everything but `net/` works without sockets, clocks and threads:

    api_keys, error_codes     the protocol's two number spaces, as plain ints
    schemas/                  all messages, declared as data; `registry` finds them by API key
    schema                    the language of the declarations
    layout, encoder, decoder  from a declaration to generated functions; `compiler` calls them
    interpreter               encodes rare messages without generating code
    headers                   request and response headers, before the message in a frame
    framing, connection       a stream of bytes to requests or responses, for clients and servers
    records/                  record batches, which messages carry as payload
    net/                      sockets of clients and servers

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
    from wire.compiler import (
        decode as decode,
        decode_from as decode_from,
        encode as encode,
        encode_buffers as encode_buffers,
        explain as explain,
    )
    from wire.errors import (
        InvalidMessage as InvalidMessage,
        MalformedMessage as MalformedMessage,
        RemoteProtocolError as RemoteProtocolError,
        UnknownApi as UnknownApi,
        UnknownVersion as UnknownVersion,
        UnsupportedField as UnsupportedField,
    )
    from wire.registry import (
        LATEST as LATEST,
        request_class as request_class,
        response_class as response_class,
        schema_module as schema_module,
        valid_versions as valid_versions,
    )
    from wire.schema import Payload as Payload, declaration as declaration

_PUBLIC = {
    "compiler": "decode decode_from encode encode_buffers explain",
    "errors": (
        "InvalidMessage MalformedMessage RemoteProtocolError UnknownApi UnknownVersion "
        "UnsupportedField"
    ),
    "registry": "LATEST request_class response_class schema_module valid_versions",
    "schema": "Payload declaration",
}
"""The public names by module. They are imported on first use: a program that only passes message
objects inside its process never loads the codecs."""

_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=(name,))
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
