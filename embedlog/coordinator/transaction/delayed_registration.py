"""A registration that waits for the end of the last transaction."""

from __future__ import annotations

from embedlog.purgatory.delayed_operation import DelayedOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class DelayedRegistration(DelayedOperation):
    """A client of version 2 sends the first batch of a transaction while the markers of the one
    before are still being written. It asks again when they are, or after `delay_ms` in any case.
    """

    __slots__ = ("_ask_again", "_is_free")

    def __init__(
        self, delay_ms: int, is_free: Callable[[], bool], ask_again: Callable[[], None]
    ) -> None:
        super().__init__(delay_ms)
        self._is_free = is_free
        self._ask_again = ask_again

    def try_complete(self) -> bool:
        """Ask again when the id is free."""
        return self._is_free() and self.complete_held()

    def on_complete(self) -> None:
        """Ask again, which may begin another wait."""
        self._ask_again()
