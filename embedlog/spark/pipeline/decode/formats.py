"""The decoder for a project's format."""

from __future__ import annotations

from typing import Any, Protocol

from embedlog.spark.pipeline.decode.json_text import JsonDecoder
from embedlog.spark.pipeline.project import Decode, read_file
from embedlog.spark.pipeline.schema import Field, Primitive, Struct, load

RAW = Struct((Field("value", Primitive("binary")),))


class Decoder(Protocol):
    """Decodes a value to an object. `schema` is the schema of the rows."""

    schema: Struct

    def parse(self, value: bytes) -> Any:
        """Return the object in a record's value.

        Raises:
            DecodeError: the value is not of this format.
        """


class RawDecoder:
    """Puts the value as it is into one column."""

    schema = RAW

    def parse(self, value: bytes) -> Any:
        return {"value": value}


def decoder_for(decode: Decode) -> Decoder:
    """Return the decoder of a project.

    Raises:
        ProjectError: the schema cannot be read, or a library is missing.
    """
    if decode.format == "none":
        return RawDecoder()
    assert decode.schema is not None, decode
    if decode.format == "json":
        return JsonDecoder(load(decode.schema, read_file(decode.schema)))
    if decode.format == "avro":
        from embedlog.spark.pipeline.decode.avro import AvroDecoder

        return AvroDecoder(decode)
    if decode.format == "protobuf":
        from embedlog.spark.pipeline.decode.protobuf import ProtobufDecoder

        return ProtobufDecoder(decode)
    from embedlog.spark.pipeline.decode.json_schema import JsonSchemaDecoder

    return JsonSchemaDecoder(decode)


def row_schema(decode: Decode) -> Struct:
    """Return the columns of a decoded value, without the column of the record's key."""
    if decode.mapped_schema is not None:
        return load(decode.mapped_schema, read_file(decode.mapped_schema))
    return decoder_for(decode).schema
