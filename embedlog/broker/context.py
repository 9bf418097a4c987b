"""Who sent a request, how, and through which door."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.net.connection import Connection


class RequestContext:
    """Everything about a request but its body. Read-only for handlers, but for `fetch_first`.

    A transport may use one object for all requests of a connection, as there is one in flight at
    a time: nothing else here is kept beyond the answer. `advertised_host` and `advertised_port` are
    those of the listener that the request came through.
    """

    __slots__ = (
        "advertised_host",
        "advertised_port",
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "client_software_name",
        "client_software_version",
        "connection",
        "correlation_id",
        "fetch_first",
        "in_process",
        "listener_name",
        "principal",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        *,
        correlation_id: int = 0,
        client_id: str | None = None,
        principal: str = "User:ANONYMOUS",
        listener_name: str = "PLAINTEXT",
        client_host: str = "127.0.0.1",
        client_software_name: str = "",
        client_software_version: str = "",
        advertised_host: str = "localhost",
        advertised_port: int = 0,
        connection: Connection | None = None,
        in_process: bool = True,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.principal = principal
        self.listener_name = listener_name
        self.client_host = client_host
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.advertised_host = advertised_host
        self.advertised_port = advertised_port
        self.connection = connection
        """None in process."""
        self.in_process = in_process
        """Is the request an object that the caller still holds? Otherwise its buffers are ours."""
        self.fetch_first: tuple[str, int] | None = None
        """The partition at which the connection's next fetch without a session begins to read."""
