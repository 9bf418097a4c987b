"""`Wakeable`: ends the call of a consumer that waits. Three things do: `wakeup`, the consumer's own
`close` in another thread or a signal handler, and the close of its cluster.
"""

from __future__ import annotations

from _weakref import ref

from embedlog.client.errors import WakeupError
from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.consumer.guard import Guard
    from embedlog.client.waiting import Waiter
    from embedlog.transport import Transport


class Wakeable:
    """The base class of the loops in which consumers' calls wait."""

    def __init__(self, transport: Transport, waiter: Waiter, guard: Guard) -> None:
        self._transport = transport
        self.waiter = waiter
        self.guard = guard
        """Every call of the consumer runs inside this guard."""
        self.is_woken = False
        """True from `wakeup` until a call raises WakeupError."""
        self.is_ending = False
        """True after `end_call`."""
        transport.ends_soon = _weakly(self)
        if transport.is_closed:
            self.end_call()  # the cluster was closed before this line

    def wakeup(self) -> None:
        self.is_woken = True
        self.waiter.arrived()
        self._transport.wake()

    def is_gone(self) -> bool:
        """Return whether the consumer, or its cluster, was closed."""
        return self.guard.is_closed or self._transport.is_closed

    def end_call(self) -> None:
        """Make the waiting call raise ClosedError: a `close` waits for its end."""
        self.is_ending = True
        self.wakeup()

    def forget_wakeup(self) -> None:
        """Cancel a `wakeup` that no call has raised yet. Requires: no call is running."""
        self.is_woken = False

    def raise_woken(self) -> None:
        if self._transport.is_closed:
            # Stay woken: no later call shall wait for answers, either.
            raise ClosedError("the cluster was closed")
        self.forget_wakeup()
        if self.is_ending:
            raise ClosedError("the consumer is being closed")
        raise WakeupError("wakeup was called")


def _weakly(wakeable: Wakeable) -> Callable[[], None]:
    """Return `wakeable.end_call`, for the transport, which must not keep the consumer alive."""
    reference = ref(wakeable)

    def end_call() -> None:
        found = reference()
        if found is not None:
            found.end_call()

    return end_call
