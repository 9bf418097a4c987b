"""`Toxics`: the toxics of a cluster, and the relay that applies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from embedlog.testing.toxics.shaping import ToxicShaper
from embedlog.testing.toxics.toxic import TO_BROKER, TO_CLIENT, Toxic
from wire.net.clock import monotonic
from wire.net.relay import Relay

if TYPE_CHECKING:
    from socket import socket

    from embedlog.runtime.scheduler import Scheduler

    Wrap = Callable[[socket], socket]


class Toxics:
    """All toxics of one cluster. Every method may be called from any thread."""

    def __init__(self, scheduler: Scheduler, wrap_sockets: Callable[[Wrap | None], None]) -> None:
        """`wrap_sockets` lets every listener pass its new sockets through a function."""
        self._wrap_sockets = wrap_sockets
        self._toxics: tuple[Toxic, ...] = ()
        self._relay = Relay()
        self._thread = scheduler.start_thread(self._relay.run, "embedlog-toxics")

    def add(self, **given: Any) -> Toxic:
        """Set a toxic: see `Kafka.toxic`."""
        toxic = Toxic(self._change, **given)
        self._change(toxic, None)
        return toxic

    def clear(self) -> None:
        """Remove all toxics; connections go on."""
        for each in self._toxics:
            each.remove()

    def close(self) -> None:
        """End the relay and its connections."""
        self._wrap_sockets(None)
        self._relay.stop()
        self._thread.join()

    def _change(self, new: Toxic | None, old: Toxic | None) -> None:
        kept = tuple(each for each in self._toxics if each is not old)
        self._toxics = kept if new is None else (*kept, new)
        self._wrap_sockets(self._wrap if self._toxics else None)
        self._relay.wake()

    def _wrap(self, sock: socket) -> socket:
        mine = [each for each in self._toxics if each.takes()]
        if not mine:
            return sock
        began = monotonic()

        def present(direction: str) -> Callable[[], Sequence[Toxic]]:
            chosen = [each for each in mine if each.acts(direction)]
            return lambda: [each for each in chosen if each in self._toxics]

        inward = ToxicShaper(present(TO_BROKER), began)
        outward = ToxicShaper(present(TO_CLIENT), began)
        return self._relay.take(sock, inward, outward)
