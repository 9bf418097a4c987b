"""`ConnectionValue`: one client's connection, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from embedlog.broker.context import RequestContext
from embedlog.testing.inspection.brokers import Brokers


@dataclass(frozen=True, slots=True)
class ConnectionValue:
    """One open connection of a client over a socket."""

    client_id: str | None
    """The client id of the last request; None before the first request."""
    software: str
    """The name of the client's library, which it may have given; else ""."""
    software_version: str
    address: str
    """The client's `host:port`."""
    node_id: int
    """The broker that it is connected to."""
    listener: str
    """The broker's `host:port` that it is connected to."""
    since_ms: int
    """The wall time of its opening."""

    def __str__(self) -> str:
        software = f" ({self.software} {self.software_version})" if self.software else ""
        return f"{self.client_id!r}{software} at {self.address}, to broker {self.node_id}"


def read_connections(brokers: Brokers) -> list[ConnectionValue]:
    """Return the open connections to all brokers, the oldest first."""
    found = []
    for core in brokers.running():
        for connection, since_ms in list(core.parked.opened_ms.items()):
            context = connection.state
            if not isinstance(context, RequestContext):
                continue  # it is being opened
            found.append(
                ConnectionValue(
                    context.client_id,
                    context.client_software_name,
                    context.client_software_version,
                    f"{connection.peer_host}:{getattr(connection, 'peer_port', 0)}",
                    core.node_id,
                    f"{connection.local_host}:{connection.local_port}",
                    since_ms,
                )
            )
    return sorted(found, key=lambda each: each.since_ms)
