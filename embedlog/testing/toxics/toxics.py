"""`Toxics`: the toxics of a cluster, and the relay that applies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from embedlog.testing.toxics.shaping import ToxicShaper
from embedlog.testing.toxics.toxic import TO_BROKER, TO_CLIENT, Toxic
from wire.net.clock import monotonic
from wire.net.relay import Relay

if TYPE_CHECKING:
    from socket import socket

    from embedlog.broker.listeners import Wrap
    from embedlog.runtime import Runtime

    class Listening(Protocol):
        """A cluster, or a proxy in front of one."""

        runtime: Runtime

        def wrap_sockets(self, wrap: Wrap | None) -> None:
            """See `Cluster.wrap_sockets`."""

    class Owner(Protocol):
        """A `Kafka` or a `Proxy`. The cluster of a `Kafka` may be replaced by another one."""

        @property
        def cluster(self) -> Listening: ...


class Toxics:
    """All toxics of one cluster. Every method may be called from any thread."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._toxics: tuple[Toxic, ...] = ()
        self._relay = Relay()
        self._thread = owner.cluster.runtime.scheduler.start_thread(
            self._relay.run, "embedlog-toxics"
        )

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
        self._owner.cluster.wrap_sockets(None)
        self._relay.stop()
        self._thread.join()

    def install(self) -> None:
        """Let the listeners of the present cluster wrap their sockets, if there is a toxic."""
        self._owner.cluster.wrap_sockets(self._wrap if self._toxics else None)

    def _change(self, new: Toxic | None, old: Toxic | None) -> None:
        kept = tuple(each for each in self._toxics if each is not old)
        self._toxics = kept if new is None else (*kept, new)
        self.install()
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
