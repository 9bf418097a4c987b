"""The events of a group: the journals of its members, and the faults from outside.

Every member writes one JSON object a line, with the time of the machine's monotonic clock, so that
the journals of all processes make one history:

    {"at": 1234.5, "event": "assigned", "partitions": [["t", 0]], "generation": 3}
    {"at": 1234.9, "event": "records", "partition": ["t", 0], "first": 0, "last": 9}
    {"at": 1235.0, "event": "committing", "id": 1, "offsets": [["t", 0, 10]]}
    {"at": 1235.1, "event": "committed", "id": 1}            or "refused", with "error"
    {"at": 1240.0, "event": "revoked", "partitions": [["t", 0]]}    or "lost"

`assigned` names only new partitions, and is written before their first record. `revoked` is written
while the group still waits for this member; `lost` if the group did not wait. "closed" ends a
member in order; "fenced" is a client's last event after another took its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One event that a member saw, or that was done to it ("killed", "frozen")."""

    at: float
    """Milliseconds of the clock all members share."""
    member: str
    kind: str
    partitions: tuple[Partition, ...] = ()
    generation: int | None = None
    first: int = -1
    last: int = -1
    id: int = -1
    offsets: dict[Partition, int] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """One whole run: the events in the order of time, and the expected results."""

    events: tuple[Event, ...]
    produced: dict[Partition, int]
    """Partition -> number of its records; all are acknowledged, from offset 0 on."""
    committed: dict[Partition, int]
    """Partition -> the coordinator's last answer about the committed offset; 0 for none."""
    instances: dict[str, str] = field(default_factory=dict)
    """Member -> its group.instance.id: another member with this id may continue in its place."""


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Merge the events of several journals; events of the same time keep their order."""
    return tuple(sorted(events, key=lambda event: event.at))


def parse(member: str, line: str) -> Event:
    """Parse a line of a member's journal."""
    row = json.loads(line)
    partitions = row.get("partitions") or ([row["partition"]] if "partition" in row else [])
    return Event(
        at=row["at"],
        member=member,
        kind=row["event"],
        partitions=tuple((topic, number) for topic, number in partitions),
        generation=row.get("generation"),
        first=row.get("first", -1),
        last=row.get("last", -1),
        id=row.get("id", -1),
        offsets={(topic, number): offset for topic, number, offset in row.get("offsets", ())},
        error=row.get("error", ""),
    )


class VerifiableConsumerJournal:
    """The output of Kafka's VerifiableConsumer, as events of a journal.

    It prints times of the wall clock. It commits consumed records at once, so its records count as
    an attempt to commit. It reports a loss as a revocation.
    """

    def __init__(self, member: str, *, wall_minus_monotonic_ms: float) -> None:
        self._member = member
        self._shift_ms = wall_minus_monotonic_ms
        self._commits = 0

    def parse(self, line: str) -> list[Event]:
        """Return the events of one line; none if it does not concern the group."""
        if not line.startswith("{"):
            return []
        row = json.loads(line)
        at = row["timestamp"] - self._shift_ms
        name = row["name"]
        if name in ("partitions_assigned", "partitions_revoked"):
            partitions = tuple(_partition(each) for each in row["partitions"])
            kind = name.removeprefix("partitions_")
            return [Event(at, self._member, kind, partitions)]
        if name == "records_consumed":
            return self._consumed(at, row)
        if name == "offsets_committed":
            kind = "committed" if row["success"] else "refused"
            error = row.get("error", "")
            return [Event(at, self._member, kind, id=self._commits, error=error)]
        if name == "shutdown_complete":
            return [Event(at, self._member, "closed")]
        return []

    def _consumed(self, at: float, row: dict[str, Any]) -> list[Event]:
        events = [
            Event(
                at,
                self._member,
                "records",
                (_partition(each),),
                first=each["minOffset"],
                last=each["maxOffset"],
            )
            for each in row["partitions"]
            if each["count"]
        ]
        self._commits += 1
        offsets = {event.partitions[0]: event.last + 1 for event in events}
        return [
            *events,
            Event(at, self._member, "committing", id=self._commits, offsets=offsets),
        ]


def _partition(row: dict[str, Any]) -> Partition:
    return row["topic"], row["partition"]
