"""The outcome of a call about transactions, which may time out and be made again."""

from __future__ import annotations


class CallResult:
    """Who calls waits for it; the sender, in its turn, gives the outcome."""

    __slots__ = ("call", "error", "is_done", "is_told")

    def __init__(self, call: str) -> None:
        self.call = call
        """The name of the call."""
        self.is_done = False
        self.error: Exception | None = None
        self.is_told = False
        """Has the caller seen the outcome? Until then the same call waits for the same one."""

    def succeed(self) -> None:
        """What was asked for is done."""
        self.is_done = True

    def fail(self, error: Exception) -> None:
        """It will not be done."""
        if not self.is_done:
            self.error = error
            self.is_done = True
