"""Coordinator records as keys and values of a log, each behind a version number.

key      int16 record type   | the key message, version 0
value    int16 value version | the value message          (null: a tombstone)
"""

from __future__ import annotations

from struct import Struct

import wire
from embedlog.coordinator.result import CoordinatorRecord
from wire.schema import Payload, declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


_INT16 = Struct(">h")
_PREFIX_SIZE = 2
_KEY_VERSION = 0

GROUP_RECORD_TYPES: dict[int, tuple[str, str]] = {
    0: ("group_metadata", "OffsetCommit"),  # Kafka 0.8's type, same fields as type 1
    1: ("group_metadata", "OffsetCommit"),
    2: ("group_metadata", "GroupMetadata"),
    3: ("consumer_group_metadata", "ConsumerGroupMetadata"),
    4: ("consumer_group_metadata", "ConsumerGroupPartitionMetadata"),
    5: ("consumer_group_metadata", "ConsumerGroupMemberMetadata"),
    6: ("consumer_group_metadata", "ConsumerGroupTargetAssignmentMetadata"),
    7: ("consumer_group_metadata", "ConsumerGroupTargetAssignmentMember"),
    8: ("consumer_group_metadata", "ConsumerGroupCurrentMemberAssignment"),
    10: ("share_group_metadata", "ShareGroupMemberMetadata"),
    11: ("share_group_metadata", "ShareGroupMetadata"),
    12: ("share_group_metadata", "ShareGroupTargetAssignmentMetadata"),
    13: ("share_group_metadata", "ShareGroupTargetAssignmentMember"),
    14: ("share_group_metadata", "ShareGroupCurrentMemberAssignment"),
    15: ("share_group_metadata", "ShareGroupStatePartitionMetadata"),
    16: ("consumer_group_metadata", "ConsumerGroupRegularExpression"),
    17: ("streams_group_metadata", "StreamsGroupMetadata"),
    19: ("streams_group_metadata", "StreamsGroupMemberMetadata"),
    20: ("streams_group_metadata", "StreamsGroupTargetAssignmentMetadata"),
    21: ("streams_group_metadata", "StreamsGroupTargetAssignmentMember"),
    22: ("streams_group_metadata", "StreamsGroupCurrentMemberAssignment"),
    23: ("streams_group_metadata", "StreamsGroupTopology"),
}
"""Record type of `__consumer_offsets` -> (module in `wire.schemas`, name of its two classes without
the endings Key and Value)."""

TRANSACTION_RECORD_TYPES: dict[int, tuple[str, str]] = {0: ("transaction_log", "TransactionLog")}
"""Record type of `__transaction_state` -> the two names, as in `GROUP_RECORD_TYPES`."""

SHARE_RECORD_TYPES: dict[int, tuple[str, str]] = {
    0: ("share_state", "ShareSnapshot"),
    1: ("share_state", "ShareUpdate"),
}
"""Record type of `__share_group_state` -> the two names, as in `GROUP_RECORD_TYPES`."""


class RecordFormat:
    """Encodes and decodes the records of one internal topic.

    A message class is imported when a record first needs it.
    """

    def __init__(
        self, types: Mapping[int, tuple[str, str]], *, is_cumulative: bool = False
    ) -> None:
        self.is_cumulative = is_cumulative
        """True if records of the same key add to each other, False if the last one counts."""
        self._types = types
        self._classes: dict[int, tuple[type[Any], type[Any]]] = {}

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        record_type = declaration(type(record.key)).record_type
        assert record_type in self._types, record
        key = _INT16.pack(record_type) + wire.encode(record.key, _KEY_VERSION)
        if record.value is None:
            return key, None
        version = record.value_version
        return key, _INT16.pack(version) + wire.encode(record.value, version)

    def decode(self, key: Payload, value: Payload | None) -> CoordinatorRecord | None:
        """Return the record of a key and a value; None for an unknown record type.

        Raises:
            MalformedMessage, UnknownVersion: the bytes are no such record.
        """
        if len(key) < _PREFIX_SIZE:
            raise wire.MalformedMessage(f"a record key of {len(key)} bytes")
        (record_type,) = _INT16.unpack_from(key)
        classes = self._classes.get(record_type)
        if classes is None:
            if record_type not in self._types:
                return None
            classes = self._load(record_type)
        key_class, value_class = classes
        decoded_key = wire.decode(key_class, _KEY_VERSION, key, _PREFIX_SIZE)
        if value is None:
            return CoordinatorRecord(decoded_key)
        if len(value) < _PREFIX_SIZE:
            raise wire.MalformedMessage(f"a record value of {len(value)} bytes")
        (version,) = _INT16.unpack_from(value)
        return CoordinatorRecord(
            decoded_key, wire.decode(value_class, version, value, _PREFIX_SIZE), version
        )

    def _load(self, record_type: int) -> tuple[type[Any], type[Any]]:
        module_name, name = self._types[record_type]
        module = __import__(f"wire.schemas.{module_name}", fromlist=(module_name,))
        classes = getattr(module, f"{name}Key"), getattr(module, f"{name}Value")
        self._classes[record_type] = classes
        return classes
