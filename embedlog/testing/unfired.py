"""`UnfiredFault`: the error of a fault rule that never acted."""

from __future__ import annotations

from embedlog.errors import EmbedlogError


class UnfiredFault(EmbedlogError, AssertionError):
    """A rule was made, and it never acted: the test proves nothing about the fault.

    `Kafka.fault` and `Registry.fault` raise it at the end of a rule made without `may_miss=True`.
    """
