"""The records of internal topics, decoded: what `dump` shows and `verify` tries."""

from __future__ import annotations

import wire
from embedlog.controller.metadata_log import METADATA_PARTITION
from embedlog.controller.metadata_log import decode as decode_metadata
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.topic_names import OFFSETS_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.record import Record

INTERNAL = (METADATA_PARTITION.topic, OFFSETS_TOPIC)

_KAFKAS_FRAME = b"\1"
"""The first byte of the metadata records of a Kafka broker, which are others than ours."""

_groups = RecordFormat(GROUP_RECORD_TYPES)


def decode(topic: str, record: Record) -> object | None:
    """What a record of an internal topic says; None for a type that is not known here.

    Raises:
        ValueError: it is not what its topic holds.
    """
    if topic == METADATA_PARTITION.topic:
        if record.value is None:
            raise wire.MalformedMessage("a metadata record without a value")
        if bytes(record.value[:1]) == _KAFKAS_FRAME:
            return None
        decoded: object = decode_metadata(bytes(record.value))
        return decoded
    if record.key is None:
        raise wire.MalformedMessage("a group record without a key")
    return _groups.decode(record.key, record.value)
