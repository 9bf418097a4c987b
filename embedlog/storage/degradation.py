"""A value that tells people which part of the cluster does not work, while the rest goes on."""

from __future__ import annotations

from embedlog.common import item

READ_ONLY = "read-only"
"""A log refuses writes because its disk has failed; published records can be read as before."""
UNREACHABLE = "unreachable"
"""The files of a log cannot be opened: nobody can read or write it."""
DAMAGED = "damaged"
"""A log is read-only and ends where rot begins: readers do not get the records behind it."""
CUT = "cut"
"""Recovery after an unclean stop has cut unsynced bytes off a log."""
QUARANTINED = "quarantined"
"""A recovery or a salvage took bytes out of a log and keeps them in files beside it; or the owner
has set aside a manifest or a pin of another process that it cannot understand."""
RETENTION_PAUSED = "retention paused"
"""The wall clock has jumped: nothing is deleted because of its age."""
UNCLEANABLE = "uncleanable"
"""Compaction has failed on a log, and does not try it again."""
WORK_FAILING = "work failing"
"""Background work fails, and will be tried again."""
MOVE_ENDED = "move ended"
"""A disk prevented the move of a log to another data directory: the log is where it was."""
OFFLINE = "offline"
"""One of several data directories has failed or is missing: its logs are not served."""


class Degradation(tuple[str, str, int, str]):
    """One degradation. `kind` is a constant of this module.

    `subject` is a partition, a data directory or a duty.
    `since_ms` is wall time, -1 if unknown; `reason` is a sentence.
    """

    __slots__ = ()

    def __new__(cls, kind: str, subject: str, *, since_ms: int, reason: str) -> Degradation:
        return tuple.__new__(cls, (kind, subject, since_ms, reason))

    kind: str = item(0)
    subject: str = item(1)
    since_ms: int = item(2)
    reason: str = item(3)

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.reason}"

    def __repr__(self) -> str:
        kind, subject, since_ms, reason = self
        return f"Degradation({kind!r}, {subject!r}, since_ms={since_ms}, reason={reason!r})"
