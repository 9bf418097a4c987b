"""`Gate`: a stage that holds requests back for a moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.errors import EmbedlogError
from embedlog.runtime.pending import Pending
from embedlog.testing.interception import Call, Proceed


class Gate:
    """Holds the requests that come while it is closed. It begins closed."""

    def __init__(self) -> None:
        self._held: list[Callable[[], None]] | None = []
        """Actions for `open`; None after it."""

    def stage(self, call: Call, proceed: Proceed) -> Any:
        """Answer a call as `Stage` does."""
        held = self._held
        if held is None:
            return proceed(call)
        answer: Pending[Any] = Pending()
        held.append(lambda: _pass_on(call, proceed, answer))
        if self._held is None and held:
            self._let_through(held)  # opened meanwhile by another thread
        return answer

    def open(self) -> None:
        """Let the held requests and all later ones through."""
        held, self._held = self._held, None
        self._let_through(held or [])

    @staticmethod
    def _let_through(held: list[Callable[[], None]]) -> None:
        while held:
            try:
                action = held.pop(0)
            except IndexError:
                return  # another thread lets the last one through
            action()


def _pass_on(call: Call, proceed: Proceed, answer: Pending[Any]) -> None:
    try:
        found = proceed(call)
    except EmbedlogError as error:
        answer.fail(error)
        return
    answer.follow(found)
