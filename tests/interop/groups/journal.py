"""The member's side of a journal: its arguments, and the lines that it writes.

A member is a process of its own. Its only argument is a JSON object:

    address, group, topics, protocol ("classic" or "consumer"), instance (or null),
    session_ms, heartbeat_ms

It writes its journal to standard output, a line at a time and unbuffered, so that a SIGKILL loses
nothing. SIGTERM asks it to leave in order.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

Partition = tuple[str, int]

COMMIT_EVERY = 20
"""Consumed records before a commit; fewer if no more arrive."""
POLL_SECONDS = 0.1


def options() -> dict[str, Any]:
    """Return the arguments of this member."""
    found: dict[str, Any] = json.loads(sys.argv[1])
    return found


class Journal:
    """The lines of one member. It keeps the positions that are not committed yet."""

    def __init__(self) -> None:
        self.is_stopping = False
        self.uncommitted: dict[Partition, int] = {}
        """Partition -> the next offset to read."""
        self.uncommitted_count = 0
        self._commits = 0
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.is_stopping = True

    def assigned(self, partitions: Iterable[Partition], generation: int | None = None) -> None:
        """Record partitions that the member got in addition."""
        self._write("assigned", partitions=sorted(partitions), generation=generation)

    def revoked(self, partitions: Iterable[Partition]) -> None:
        """Record revoked partitions, for which the group waits."""
        self._gone("revoked", partitions)

    def lost(self, partitions: Iterable[Partition]) -> None:
        """Record lost partitions."""
        self._gone("lost", partitions)

    def record(self, topic: str, partition: int, offset: int) -> None:
        """Record a consumed record."""
        self._write("records", partition=[topic, partition], first=offset, last=offset)
        self.uncommitted[topic, partition] = offset + 1
        self.uncommitted_count += 1

    def committing(self) -> int:
        """Record the attempt to commit all consumed records; return the id of the attempt."""
        self._commits += 1
        offsets = [[*partition, offset] for partition, offset in self.uncommitted.items()]
        self._write("committing", id=self._commits, offsets=offsets)
        self.uncommitted = {}
        self.uncommitted_count = 0
        return self._commits

    def committed(self, commit: int) -> None:
        """Record that the coordinator stored the commit."""
        self._write("committed", id=commit)

    def refused(self, commit: int, error: object) -> None:
        """Record that the coordinator refused the commit."""
        self._write("refused", id=commit, error=str(error))

    def fenced(self, error: object) -> None:
        """Record that another member has taken over the name, which ends this member."""
        self._write("fenced", error=str(error))

    def closed(self) -> None:
        """Record that the member left."""
        self._write("closed")

    def _gone(self, kind: str, partitions: Iterable[Partition]) -> None:
        gone = sorted(partitions)
        for partition in gone:
            self.uncommitted.pop(partition, None)
        self._write(kind, partitions=gone)

    @staticmethod
    def _write(kind: str, **what: object) -> None:
        row: Mapping[str, object] = {"at": time.monotonic() * 1000, "event": kind, **what}
        os.write(1, json.dumps(row).encode() + b"\n")
