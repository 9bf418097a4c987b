"""`WaitTimedOut`: the error of a wait whose time is over."""

from __future__ import annotations

from collections.abc import Sequence

from embedlog.errors import EmbedlogError


class WaitTimedOut(EmbedlogError, AssertionError):
    """The cluster did not reach the state that a test waited for: test runners show a failure.

    >>> print(WaitTimedOut("group 'g' with 2 members", 10, "Empty", ["there is a group 'gg'"]))
    waited 10 s for group 'g' with 2 members
      seen last: Empty
      near it: there is a group 'gg'
    """

    def __init__(self, wanted: str, timeout: float, seen: str, near: Sequence[str] = ()) -> None:
        self.wanted = wanted
        """The state that the test waited for."""
        self.timeout = timeout
        """The time limit, in seconds of real time."""
        self.seen = seen
        """The state that the wait saw last."""
        self.near = tuple(near)
        """Facts that may explain it."""
        lines = [f"waited {timeout:g} s for {wanted}"]
        lines.append("  seen last: " + seen.replace("\n", "\n  "))
        lines += ["  near it: " + each.replace("\n", "\n  ") for each in self.near]
        super().__init__("\n".join(lines))
