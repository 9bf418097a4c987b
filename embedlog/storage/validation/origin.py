"""Who appends decides how much is checked."""

from __future__ import annotations


class AppendOrigin:
    """The source of an append, as Kafka names them."""

    REPLICATION = 0
    """Copied from a leader, or read back from disk: checked before, never refused."""
    COORDINATOR = 1
    """A group or transaction coordinator of this broker: offset commits, markers; no sequences."""
    CLIENT = 2
    """A produce request: everything is checked."""
