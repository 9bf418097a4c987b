"""Decode records of internal topics, for `dump` and `verify`."""

from __future__ import annotations

import wire
from embedlog.controller.metadata_log import METADATA_PARTITION
from embedlog.controller.metadata_log import decode as decode_metadata
from embedlog.coordinator.records import GROUP_RECORD_TYPES, SHARE_RECORD_TYPES, RecordFormat
from embedlog.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from wire.records.record import Record

INTERNAL = (METADATA_PARTITION.topic, OFFSETS_TOPIC, SHARE_STATE_TOPIC)

_KAFKAS_FRAME = b"\1"
"""First byte of Apache Kafka's metadata records; embedlog writes records of its own."""

_FORMATS = {
    OFFSETS_TOPIC: RecordFormat(GROUP_RECORD_TYPES),
    SHARE_STATE_TOPIC: RecordFormat(SHARE_RECORD_TYPES),
}


def decode(topic: str, record: Record) -> object | None:
    """Return the decoded record of an internal topic; None for an unknown type.

    Raises:
        ValueError: the record does not fit its topic.
    """
    if topic == METADATA_PARTITION.topic:
        if record.value is None:
            raise wire.MalformedMessage("a metadata record without a value")
        if bytes(record.value[:1]) == _KAFKAS_FRAME:
            return None
        decoded: object = decode_metadata(bytes(record.value))
        return decoded
    if record.key is None:
        raise wire.MalformedMessage("a record of a coordinator without a key")
    return _FORMATS[topic].decode(record.key, record.value)
