"""Formats without a schema, and the error of bytes that have another format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from embedlog.errors import EmbedlogError


class Undecodable(EmbedlogError, ValueError):
    """Bytes that do not have the format that the test named, or a value that cannot have it."""


class Format(Protocol):
    """How a key or a value is written."""

    def decode(self, data: bytes) -> Any:
        """Return the value. Raises Undecodable."""

    def encode(self, value: Any) -> bytes:
        """Return the bytes. Raises Undecodable."""


class _Bytes:
    def decode(self, data: bytes) -> Any:
        return data

    def encode(self, value: Any) -> bytes:
        raise Undecodable(f"{value!r} is {type(value).__name__}, not bytes, str or None")

    def __repr__(self) -> str:
        return "bytes"


class _Text:
    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"{data!r} is not UTF-8: {error}") from None

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise Undecodable(f"{value!r} is {type(value).__name__}, not text")
        return value.encode()

    def __repr__(self) -> str:
        return "text"


class _Json:
    def decode(self, data: bytes) -> Any:
        from json import loads

        try:
            return loads(data)
        except ValueError as error:
            raise Undecodable(f"{data!r} is not JSON: {error}") from None

    def encode(self, value: Any) -> bytes:
        from json import dumps

        try:
            return dumps(value, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise Undecodable(f"{value!r} cannot be JSON: {error}") from None

    def __repr__(self) -> str:
        return "json"


class Int:
    """A signed integer of Kafka's serializers, the highest byte first."""

    def __init__(self, size: int) -> None:
        self._size = size

    def decode(self, data: bytes) -> int:
        if len(data) != self._size:
            raise Undecodable(f"{data!r} has {len(data)} bytes, {self!r} has {self._size}")
        return int.from_bytes(data, "big", signed=True)

    def encode(self, value: Any) -> bytes:
        if type(value) is not int:
            raise Undecodable(f"{value!r} is {type(value).__name__}, not an int")
        try:
            return value.to_bytes(self._size, "big", signed=True)
        except OverflowError:
            raise Undecodable(f"{value} does not fit into {self!r}") from None

    def __repr__(self) -> str:
        return f"int{8 * self._size}"


class Function:
    """A user's decoder."""

    def __init__(self, function: Callable[[bytes], Any]) -> None:
        self._function = function

    def decode(self, data: bytes) -> Any:
        return self._function(data)

    def encode(self, value: Any) -> bytes:
        raise Undecodable(f"{value!r}: {self._function!r} only decodes; give bytes")

    def __repr__(self) -> str:
        return repr(self._function)


BYTES, TEXT, JSON = _Bytes(), _Text(), _Json()
