"""Which decoder a project asks for."""

from __future__ import annotations

from typing import Any, Protocol

from embedlog.spark.pipeline.decode.files import read_file
from embedlog.spark.pipeline.decode.json_text import JsonDecoder
from embedlog.spark.pipeline.project import Decode
from embedlog.spark.pipeline.schema import Field, Primitive, Struct, load

RAW = Struct((Field("value", Primitive("binary")),))


class Decoder(Protocol):
    """Bytes to an object. `schema` is what the gate lets through behind it."""

    schema: Struct

    def parse(self, value: bytes) -> Any:
        """The object in a record's value.

        Raises:
            DecodeError: it is not of this format.
        """


class RawDecoder:
    """The value as it is, in one column."""

    schema = RAW

    def parse(self, value: bytes) -> Any:
        """A row of one column."""
        return {"value": value}


def decoder_for(decode: Decode) -> Decoder:
    """The decoder of a project.

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
    """The columns that decoding gives, before those of the record's key."""
    if decode.mapped_schema is not None:
        return load(decode.mapped_schema, read_file(decode.mapped_schema))
    return decoder_for(decode).schema
