"""Answers as plain data; values that differ between any two brokers are replaced by names.

Uuids, producer ids, session ids and the member ids of a broker get names in the order in which a
scenario meets them, so that "the same id again" is still compared. Ports, cluster ids, directories
and the present time become one word each. Arrays whose order Kafka leaves to a hash map are sorted
by their name. Only the scenario's own groups and transactional ids are listed.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

from embedlog.common import uuid_to_text
from wire.schemas.describe_producers import ProducerState
from wire.schemas.elect_leaders import ReplicaElectionResult
from wire.schemas.list_groups import ListedGroup
from wire.schemas.list_transactions import TransactionState
from wire.schemas.write_txn_markers import WritableTxnMarkerResult

NOW_MARGIN_MS = 3_600_000
SORT_KEYS = ("name", "topic", "topic_name", "api_key", "resource_name", "partition_index")
SORT_KEYS += ("transactional_id", "partition", "index", "topic_id", "group_id", "member_id")
SORT_KEYS += ("group_instance_id", "partition_id", "broker_id", "node_id", "replica_id", "log_dir")
HEADER = struct.Struct(">qiibIhiqqqhii")
IDS = {"producer_id": "producer", "session_id": "session", "ongoing_txn_producer_id": "producer"}
_FIRST = {"producer_id": 0, "session_id": 1, "ongoing_txn_producer_id": 0}
WORDS = {
    "cluster_id": "<cluster>",
    "port": "<port>",
    "log_dir": "<directory>",
    "total_bytes": "<bytes>",
    "usable_bytes": "<bytes>",
    "finalized_features_epoch": "<epoch>",
}
TIME = re.compile(r"\b1[6-9]\d{11}\b|-922337\d{13}\b")
PATH = re.compile(r"(/[\w.-]+){2,}")
MEMBER_IDS = ("member_id", "leader")
MADE_ID = re.compile(r"(.*-)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|([\w-]{22})")
"""Ids from a broker: a prefix and a random uuid (classic groups), or a uuid in 22 characters."""
OPAQUE = ("metadata", "assignment", "member_metadata", "member_assignment")
"""Fields that classic members send to each other: never an id, whatever their length."""
UNORDERED = ("partitions", "subscribed_topic_names")


class Normaliser:
    """Turns one scenario's answers into comparable data; remembers the given names."""

    def __init__(
        self,
        own_groups: str = "",
        own_topics: str = "",
        words: Mapping[str, str | Callable[[Any], str]] = WORDS,
    ) -> None:
        """Take the prefixes of the scenario's group ids and topic names.

        Answers to elections of all partitions are reduced to its own topics. `words` replace the
        values of the fields with these names, or compute the replacement.
        """
        self._own_groups = own_groups
        self._own_topics = own_topics
        self._words = words
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def learn(self, value: Any, name: str, kind: str = "uuid") -> None:
        """Call a uuid (or another kind of id) `name` from here on."""
        self._names[kind, value] = f"<{name}>"

    def __call__(self, message: Any) -> dict[str, Any]:
        plain = {}
        for name in (field.name for field in type(message).__fields__):
            plain[name] = self._value(name, getattr(message, name))
        return plain

    def _value(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | float):
            return value
        if name in self._words and value not in ("", -1, 0):
            word = self._words[name]
            return word if isinstance(word, str) else word(value)
        if name in IDS and isinstance(value, int) and value >= _FIRST[name]:
            return self._named(IDS[name], value)
        if isinstance(value, int):
            return "<now>" if _is_now(value) else value
        if isinstance(value, str):
            return self._member_id(value) if name in MEMBER_IDS else self._text(value)
        if isinstance(value, list):
            return self._list(name, value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(name, bytes(value))
        return self(value)

    def _text(self, value: str) -> str:
        """Messages contain times, directories, and ids of this scenario."""
        value = PATH.sub("<path>", TIME.sub("<time>", value))
        for (kind, known), name in self._names.items():
            if kind == "producer":
                value = re.sub(rf"\b{known}\b", name, value)
            elif kind == "uuid":
                value = value.replace(uuid_to_text(known), name)
            elif kind == "member":
                value = value.replace(known, name)
        return value

    def _member_id(self, value: str) -> str:
        """Keep the prefix: it is the client's id, or its instance id."""
        made = MADE_ID.fullmatch(value)
        if made is None:
            return value
        return (made[1] or "") + self._named("member", made[2] or made[3])

    def _list(self, name: str, values: list[Any]) -> list[Any]:
        if values and isinstance(values[0], ListedGroup):
            values = [group for group in values if group.group_id.startswith(self._own_groups)]
        if values and isinstance(values[0], ReplicaElectionResult):
            values = [row for row in values if row.topic.startswith(self._own_topics)]
        if values and isinstance(values[0], TransactionState):
            values = [t for t in values if t.transactional_id.startswith(self._own_groups)]
            values.sort(key=lambda row: row.transactional_id)
        if values and isinstance(values[0], ProducerState | WritableTxnMarkerResult):
            # Visit ids in the order of their assignment, because names follow it.
            values = sorted(values, key=lambda row: row.producer_id)
        if name in UNORDERED and values and isinstance(values[0], int | str):
            values = sorted(values)
        if values and hasattr(values[0], "member_id"):
            # Unknown members get their names in an order that does not depend on ids.
            values = sorted(values, key=self._member_rank)
        plain = [self._value(name, value) for value in values]
        if plain and isinstance(plain[0], dict):
            keys = [key for key in SORT_KEYS if key in plain[0]]
            plain.sort(key=lambda row: [str(row[key]) for key in keys])
        return plain

    def _member_rank(self, row: Any) -> tuple[bool, str]:
        made = MADE_ID.fullmatch(row.member_id)
        is_new = made is not None and ("member", made[2] or made[3]) not in self._names
        others = [str(getattr(row, f.name)) for f in type(row).__fields__ if f.name != "member_id"]
        return is_new, "" if not is_new else " ".join(others)

    def _bytes(self, name: str, value: bytes) -> Any:
        if name == "records":
            return self._batches(value)
        if len(value) == 16 and name not in OPAQUE:
            return self._named("uuid", value) if any(value) else "<no id>"
        return value.hex()

    def _batches(self, data: bytes) -> dict[str, Any]:
        """Return a record set as its batches, and the number of bytes of a truncated batch after
        them.
        """
        rows = []
        position = 0
        while position + HEADER.size <= len(data):
            fields = HEADER.unpack_from(data, position)
            end = position + 12 + fields[1]
            if end > len(data):
                break
            names = ("base_offset", "length", "leader_epoch", "magic", "crc", "attributes",
                     "last_offset_delta", "base_timestamp", "max_timestamp", "producer_id",
                     "producer_epoch", "base_sequence", "count")  # fmt: skip
            row: dict[str, Any] = dict(zip(names, fields, strict=True))
            if _is_now(row["max_timestamp"]):
                # The checksum covers the leader's time.
                row["max_timestamp"], row["crc"] = "<now>", "<depends on now>"
                if _is_now(row["base_timestamp"]):
                    row["base_timestamp"] = "<now>"
            if row["producer_id"] >= 0:
                row["producer_id"] = self._named("producer", row["producer_id"])
                row["crc"] = "<depends on the producer>"
            row["records"] = data[position + HEADER.size : end].hex()
            rows.append(row)
            position = end
        return {"batches": rows, "cut": len(data) - position}

    def _named(self, kind: str, value: Any) -> str:
        if (kind, value) not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[kind, value] = f"<{kind} {self._counts[kind]}>"
        return self._names[kind, value]


def _is_now(value: int) -> bool:
    return abs(value - time.time() * 1000) < NOW_MARGIN_MS
