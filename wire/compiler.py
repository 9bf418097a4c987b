"""Encode and decode messages with functions generated per (message class, version) on first use.

Generating and compiling takes about half a millisecond; a program pays for the versions that it
uses, not for all declared ones. Tracebacks show the lines of the generated code, and `explain`
prints them.
"""

from __future__ import annotations

import struct

from wire.errors import InvalidMessage, MalformedMessage, UnknownVersion
from wire.schema import Payload, declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from wire.source import Source

    T = TypeVar("T")


def encode(message: Any, version: int) -> bytes:
    """Return the bytes of a message.

    Raises:
        UnsupportedField: the version lacks a field that has a value and is not ignorable.
        InvalidMessage: a value does not fit its type.
        UnknownVersion: the message class has no such version.

    >>> from wire.schemas.sasl_handshake import SaslHandshakeRequest
    >>> encode(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    b'\\x00\\x05PLAIN'
    """
    out: list[Payload] = []
    encode_into(message, version, out, None)
    return b"".join(out)


def encode_buffers(message: Any, version: int) -> list[Payload]:
    """Return a message as buffers to write one after the other.

    Record batches of 1 KiB or more are the caller's own objects, not copies; the bytes between
    them are joined. Raises as `encode` does.
    """
    out: list[Payload] = []
    buffers: list[Payload] = []
    encode_into(message, version, out, buffers)
    if out:
        buffers.append(b"".join(out))
    return buffers


def encode_into(
    message: Any, version: int, out: list[Payload], buffers: list[Payload] | None
) -> None:
    """Append the pieces of a message to `out`, but large payloads to `buffers` if it is given.

    Before a large payload is appended, the pieces in `out` are joined and moved to `buffers`. So
    the message consists of the bytes in `buffers`, followed by the bytes in `out`.
    """
    try:
        function = message.__encoders__[version]
    except KeyError:
        function = _compile_encoder(type(message), version)
    try:
        function(message, out, out.append, buffers)
    except (struct.error, TypeError, AttributeError, UnicodeEncodeError) as error:
        raise InvalidMessage(_why_invalid(message, version) or str(error)) from error


def decode(cls: type[T], version: int, buffer: Payload, position: int = 0) -> T:
    """Return the message that starts at `position`; bytes behind it are ignored, as in Kafka.

    Strings and bytes are copies, records are slices of `buffer`.

    Raises:
        MalformedMessage: the bytes are not a message of this class and version.
        UnknownVersion: the message class has no such version.
    """
    return decode_from(cls, version, buffer, position)[0]


def decode_from(
    cls: type[T], version: int, buffer: Payload, position: int, elements_max: int | None = None
) -> tuple[T, int]:
    """Return (message, position after it); raises as `decode` does.

    `elements_max` limits the number of elements in all arrays of a request together; None means
    `wire.decoder.REQUEST_ELEMENTS_MAX`. It must be None if `cls` is not a request.
    """
    try:
        function = cls.__decoders__[version]  # type: ignore[attr-defined]
    except KeyError:
        function = _compile_decoder(cls, version)
    end = len(buffer)
    try:
        result: tuple[T, int] = (
            function(buffer, position, end)
            if elements_max is None
            else function(buffer, position, end, elements_max)
        )
    except (struct.error, IndexError) as error:
        raise MalformedMessage(
            f"{cls.__name__} version {version} at {position} is cut off: it ends at {end}"
        ) from error
    except MalformedMessage as error:
        raise MalformedMessage(f"{cls.__name__} version {version}: {error}") from error
    return result


def explain(cls: type[Any], version: int) -> str:
    """Return the generated source that encodes and decodes a message class at a version."""
    _require_version(cls, version)
    return f"{_encoder_source(cls, version).text()}\n\n{_decoder_source(cls, version).text()}"


# The generators are imported by the first encoded or decoded message: a program that only passes
# message objects around never needs them.


def _encoder_source(cls: type[Any], version: int) -> Source:
    from wire.encoder import generate_encoder
    from wire.layout import layout

    return generate_encoder(layout(cls, version), cls.__name__, version)


def _decoder_source(cls: type[Any], version: int) -> Source:
    from wire.decoder import generate_decoder
    from wire.layout import layout

    is_request = declaration(cls).kind == "request"
    return generate_decoder(layout(cls, version), cls.__name__, version, is_request=is_request)


def _compile_encoder(cls: type[Any], version: int) -> Any:
    _require_version(cls, version)
    function = _compile(_encoder_source(cls, version), f"{cls.__name__}.v{version}.encode")
    cls.__encoders__[version] = function
    return function


def _compile_decoder(cls: type[Any], version: int) -> Any:
    _require_version(cls, version)
    function = _compile(_decoder_source(cls, version), f"{cls.__name__}.v{version}.decode")
    cls.__decoders__[version] = function
    return function


def _require_version(cls: type[Any], version: int) -> None:
    declared = declaration(cls)
    if not declared.first_version <= version <= declared.last_version:
        raise UnknownVersion(
            f"{cls.__name__} has versions {declared.first_version}-{declared.last_version},"
            f" not {version}"
        )


def _why_invalid(message: Any, version: int) -> str | None:
    from wire.diagnosis import find_invalid
    from wire.layout import layout

    cls = type(message)
    found = find_invalid(layout(cls, version), message)
    return found and f"{cls.__name__} version {version}: {found}"


class _Text:
    """The `__loader__` of a generated function: gives `linecache` the source for tracebacks.

    Registering the source would import `linecache`, and with that `tokenize` and `re`.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, _name: str) -> str:
        return self._text


def _compile(source: Source, name: str) -> Any:
    text = source.text()
    scope = {**source.constants, "__name__": f"wire.generated.{name}", "__loader__": _Text(text)}
    exec(compile(text, f"wire/generated/{name}", "exec"), scope)
    return scope[name.rpartition(".")[2]]
