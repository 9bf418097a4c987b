"""The context of a request: the sender, the version, and the listener that received it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.net.connection import Connection


class RequestContext:
    """Everything about a request except its body. Handlers may only change `fetch_first`.

    A transport may use one object for all requests of a connection, because only one is in flight
    at a time. So do not keep it beyond the answer. `advertised_host` and `advertised_port` are the
    address for clients of the listener that received the request.
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
        """None if the sender is in this process."""
        self.in_process = in_process
        """Whether the sender is in this process and may still use the request's buffers. If not,
        the buffers belong to the broker."""
        self.fetch_first: tuple[str, int] | None = None
        """The partition at which the connection's next fetch without a session begins to read."""
