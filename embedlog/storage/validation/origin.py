"""The origin of an append decides how much is checked."""

from __future__ import annotations


class AppendOrigin:
    """The origin of an append, by Kafka's names."""

    REPLICATION = 0
    """Copied from a leader, or read from disk: checked before, never refused."""
    COORDINATOR = 1
    """A group or transaction coordinator of this broker: offset commits, markers; no sequences."""
    CLIENT = 2
    """A produce request: everything is checked."""
