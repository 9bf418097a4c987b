"""The factory of TLS connections that a client's settings ask for."""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings
    from wire.net.tls import TlsClient


def tls_client(settings: Settings) -> TlsClient | None:
    """Make the factory of TLS connections, if the settings ask for TLS.

    Raises:
        ConfigError: settings contradict each other, or a certificate is unreadable.
    """
    if not settings["security.protocol"].endswith("SSL"):
        return None
    from embedlog.client.network.security import tls_arguments
    from wire.net.tls import TlsClient, TlsOptions

    options = TlsOptions(**tls_arguments(settings))
    try:
        return TlsClient(options)
    except ValueError as error:
        raise ConfigError(f"TLS as configured by ssl.* is not possible: {error}") from None
