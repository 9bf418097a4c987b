"""The open connections of a broker, and their parked fetches, which end when connections break."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from embedlog.replication.delayed_fetch import DelayedFetch
    from embedlog.runtime import Runtime
    from embedlog.sharing.share_fetch import DelayedShareFetch
    from wire.net.connection import Connection

    Parked: TypeAlias = DelayedFetch | DelayedShareFetch


class ParkedFetches:
    """The parked fetch of each connection, which has one request in flight at a time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.opened_ms: dict[Connection, int] = {}
        """Open connection -> the wall time of its opening."""
        self._parked: dict[Connection, Parked] = {}
        self.when_closed: Callable[[Connection], None] | None = None
        """Called with each closed connection, after its fetch was abandoned."""

    def park(self, connection: Connection, operation: Parked) -> None:
        self._parked[connection] = operation
        if operation.is_completed:
            self.unpark(connection)

    def unpark(self, connection: Connection) -> None:
        """Forget the connection's fetch, because it is being answered."""
        self._parked.pop(connection, None)

    def connection_opened(self, connection: Connection) -> None:
        self.opened_ms[connection] = self._runtime.clock.wall_ms()
        self._changed()

    def connection_closed(self, connection: Connection) -> None:
        self.opened_ms.pop(connection, None)
        self._changed()
        operation = self._parked.pop(connection, None)
        if operation is not None:
            operation.abandon()
        if self.when_closed is not None:
            self.when_closed(connection)

    def _changed(self) -> None:
        for changed in list(self._runtime.watchers):
            changed()
