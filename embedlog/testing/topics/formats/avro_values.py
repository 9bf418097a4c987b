"""Avro values by fastavro, without a header or a file around them."""

from __future__ import annotations

from typing import Any

from embedlog.errors import ConfigError
from embedlog.testing.topics.formats.basic import Undecodable


class Avro:
    """The Avro values of one schema."""

    def __init__(self, schema: Any) -> None:
        """Parse the schema: JSON text, or its value.

        Raises:
            ConfigError: fastavro is missing, or refuses the schema.
        """
        try:
            import fastavro
        except ImportError:
            raise ConfigError(
                "fastavro is missing, which reads Avro: pip install 'embedlog[testing]'"
            ) from None
        from json import loads

        self._read: Any = fastavro.schemaless_reader
        self._write: Any = fastavro.schemaless_writer
        try:
            given = loads(schema) if isinstance(schema, str | bytes) else schema
            self._schema: Any = fastavro.parse_schema(given)
        except Exception as error:
            # fastavro raises errors of many kinds for a bad schema.
            raise ConfigError(f"{schema!r} is no Avro schema: {error}") from error

    def decode(self, data: bytes) -> Any:
        source = _Source(data)
        try:
            found = self._read(source, self._schema, None)
        except Exception as error:
            raise Undecodable(f"{data!r} has another Avro schema: {error}") from error
        if source.position != len(data):
            extra = len(data) - source.position
            raise Undecodable(f"{data!r} has another Avro schema: {extra} bytes are left")
        return found

    def encode(self, value: Any) -> bytes:
        written = _Sink()
        try:
            self._write(written, self._schema, value)
        except Exception as error:
            raise Undecodable(f"{value!r} does not fit the Avro schema: {error}") from error
        return bytes(written.data)

    def __repr__(self) -> str:
        name = self._schema.get("name") if isinstance(self._schema, dict) else self._schema
        return f"avro({name!r})"


class _Source:
    """Bytes as a file to read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size < 0 else self.position + size
        found = self._data[self.position : end]
        self.position += len(found)
        return found


class _Sink:
    """A file to write that keeps its bytes."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, part: bytes) -> int:
        self.data += part
        return len(part)

    def flush(self) -> None: ...
