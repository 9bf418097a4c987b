"""Values with Confluent's header; `registry` has the schemas of its ids."""

from __future__ import annotations

from typing import Any

from embedlog import confluent_header
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode


def split(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the rest of the value. Raises DecodeError if there is no header."""
    try:
        return confluent_header.split(value)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def split_message_indexes(rest: bytes) -> tuple[list[int], bytes]:
    """Return Protobuf's message indexes and the message after them.

    Raises:
        DecodeError: the indexes are cut off, or their count is negative.
    """
    try:
        return confluent_header.split_message_indexes(rest)
    except ValueError as error:
        raise DecodeError(str(error)) from None


def row_of(decode: Decode, schema: Any) -> Any:
    """Return the type of the rows in values of `schema`; for Debezium's envelope, of `after`."""
    if decode.envelope != "debezium":
        return schema
    after = next((each for each in schema.fields if each.name == "after"), None)
    if after is None or not hasattr(after.type, "fields"):
        raise ProjectError(f"{decode.schema}: no Debezium envelope: `after` is no record")
    return after.type
