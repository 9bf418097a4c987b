"""What is wrong with a part of the cluster that goes on without it: a value for people to read."""

from __future__ import annotations

from _operator import itemgetter

TYPE_CHECKING = False

READ_ONLY = "read-only"
"""A log refuses writes since the disk failed; what it had published is read as before."""
DAMAGED = "damaged"
"""A log ends, read-only, where rot begins: records behind it are not shown."""
CUT = "cut"
"""Recovery after an unclean stop has cut bytes off a log that were never synced."""
QUARANTINED = "quarantined"
"""Bytes that a recovery or a salvage took out of a log are kept in files beside it."""
RETENTION_PAUSED = "retention paused"
"""The wall clock has jumped: nothing is deleted for its age."""
UNCLEANABLE = "uncleanable"
"""Compaction has failed on a log, and leaves it alone."""
WORK_FAILING = "work failing"
"""Background work fails, and is tried again."""
MOVE_ENDED = "move ended"
"""A disk has kept a log from moving to another data directory: it is where it was."""
OFFLINE = "offline"
"""A data directory of several has failed, or is not there: its logs are not served."""


class Degradation(tuple[str, str, int, str]):
    """`kind` is one of the constants of this module, `subject` the partition, directory or duty.

    `since_ms` is wall time, -1 when nobody knows it; `reason` is a sentence.
    """

    __slots__ = ()

    def __new__(cls, kind: str, subject: str, *, since_ms: int, reason: str) -> Degradation:
        return tuple.__new__(cls, (kind, subject, since_ms, reason))

    if TYPE_CHECKING:

        @property
        def kind(self) -> str: ...
        @property
        def subject(self) -> str: ...
        @property
        def since_ms(self) -> int: ...
        @property
        def reason(self) -> str: ...

    else:
        kind = property(itemgetter(0))
        subject = property(itemgetter(1))
        since_ms = property(itemgetter(2))
        reason = property(itemgetter(3))

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.reason}"

    def __repr__(self) -> str:
        kind, subject, since_ms, reason = self
        return f"Degradation({kind!r}, {subject!r}, since_ms={since_ms}, reason={reason!r})"
