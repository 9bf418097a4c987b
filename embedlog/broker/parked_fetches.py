"""The fetches that connections wait for: one that breaks waits no longer."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.delayed_fetch import DelayedFetch
    from wire.net.connection import Connection


class ParkedFetches:
    """By connection, which has one request in flight at a time."""

    __slots__ = ("_parked",)

    def __init__(self) -> None:
        self._parked: dict[Connection, DelayedFetch] = {}

    def park(self, connection: Connection, operation: DelayedFetch) -> None:
        """Note what a connection waits for."""
        self._parked[connection] = operation
        if operation.is_completed:
            self.unpark(connection)

    def unpark(self, connection: Connection) -> None:
        """What the connection waited for, if it did, is being answered."""
        self._parked.pop(connection, None)

    def connection_closed(self, connection: Connection) -> None:
        """Nobody waits at that connection any more: forget its parked request."""
        operation = self._parked.pop(connection, None)
        if operation is not None:
            operation.abandon()
