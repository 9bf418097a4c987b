"""The parked fetches of connections, which end when their connections break."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.delayed_fetch import DelayedFetch
    from wire.net.connection import Connection


class ParkedFetches:
    """The parked fetch of each connection, which has one request in flight at a time."""

    def __init__(self) -> None:
        self._parked: dict[Connection, DelayedFetch] = {}

    def park(self, connection: Connection, operation: DelayedFetch) -> None:
        self._parked[connection] = operation
        if operation.is_completed:
            self.unpark(connection)

    def unpark(self, connection: Connection) -> None:
        """Forget the connection's fetch, because it is being answered."""
        self._parked.pop(connection, None)

    def connection_closed(self, connection: Connection) -> None:
        operation = self._parked.pop(connection, None)
        if operation is not None:
            operation.abandon()
