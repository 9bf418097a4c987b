"""Make a transport from the target that a client was given: a cluster of this process or an
address."""

from __future__ import annotations

from embedlog.client.settings import COMMON, warn_idle
from embedlog.errors import ConfigError
from embedlog.runtime.forks import stays_in_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from embedlog.client.settings import Settings
    from embedlog.transport import Transport

    class Connectable(Protocol):
        """A cluster of this process: `embedlog.open` returns one."""

        def connect(self, client_id: str) -> Transport:
            """Return a transport to this cluster's brokers."""

    class Reachable(Protocol):
        """A cluster of this process or of another: `embedlog.connect_or_open` returns one."""

        def reach(self, settings: Settings) -> Transport:
            """Return a transport to this cluster's brokers, over the network with `settings`."""

    Target = Connectable | Reachable | Transport | str | Sequence[str] | None


_OF_CONNECTIONS = (
    "bootstrap.servers",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "enable.ssl.certificate.verification",
    "metadata.cluster.check.enable",
    "metadata.recovery.",
    "receive.buffer.bytes",
    "reconnect.backoff.",
    "sasl.",
    "security.protocol",
    "send.buffer.bytes",
    "socket.connection.",
    "ssl.",
)
"""Prefixes of settings about connections: without a network they have no effect."""


def connect(client: object, target: Target, settings: Settings) -> Transport:
    """Return the transport to `target`: a cluster, a transport, "host:port[,host:port]" or a list.

    None means the addresses of bootstrap.servers. A `client` refuses to work in a forked child if
    its cluster is in this process, or if processes share its cluster.

    Raises:
        ConfigError: there is neither a target nor bootstrap.servers, an address is malformed, or
            none of them can be resolved.
    """
    made = getattr(target, "connect", None)
    if made is not None:
        _warn_without_effect(target, settings, in_process=True)
        transport: Transport = made(settings["client.id"])
        if transport.in_process:
            stays_in_parent(client)
        return transport
    reach = getattr(target, "reach", None)
    if reach is not None:
        reached: Transport = reach(settings)
        _warn_without_effect(target, settings, in_process=reached.in_process)
        stays_in_parent(client)
        return reached
    if target is not None and hasattr(target, "send"):
        return target  # type: ignore[return-value]
    addresses = settings["bootstrap.servers"] or []
    if isinstance(target, str):
        addresses = [each.strip() for each in target.split(",") if each.strip()]
    elif isinstance(target, list | tuple):
        addresses = list(target)
    elif target is not None:
        raise ConfigError(f"{target!r} is neither a cluster nor an address")
    if not addresses:
        raise ConfigError("nothing to connect to: give a cluster, an address or bootstrap.servers")
    parsed = [parse_address(each) for each in addresses]
    _warn_without_effect(target, settings, in_process=False)
    from embedlog.client.network.bootstrap import known_addresses
    from embedlog.client.network.network_client import NetworkClient

    return NetworkClient(known_addresses(parsed, settings["client.dns.lookup"]), settings)


def _warn_without_effect(target: Target, settings: Settings, *, in_process: bool) -> None:
    """Warn once of settings that have no effect with this target, or with the other settings.

    In process nothing is connected; elsewhere the given address replaces bootstrap.servers, and the
    settings of TLS and SASL need a security.protocol that uses them. A default value gets no
    warning.
    """
    given = [
        name
        for name in getattr(settings, "given", ())
        if name.startswith(_OF_CONNECTIONS) and settings[name] != COMMON[name][1]
    ]
    if not given:
        return
    protocol = settings["security.protocol"]
    reasons: dict[str, list[str]] = {}
    for name in sorted(set(given)):
        if in_process:
            reason = "the client was given a cluster of this process"
        elif name == "bootstrap.servers" and target is not None:
            reason = "the client was given another address"
        elif (name.startswith("sasl.") and "SASL" not in protocol) or (
            name.startswith("ssl.") and "SSL" not in protocol
        ):
            reason = f"security.protocol is {protocol}"
        else:
            continue
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        warn_idle(settings, names, reason)


def parse_address(text: str) -> tuple[str, int]:
    """Return (host, port) of "host:port" or "[v6 address]:port"; a "PLAINTEXT://" before it is
    skipped.

    >>> parse_address("localhost:9092")
    ('localhost', 9092)

    Raises:
        ConfigError: the text has another form.
    """
    if not isinstance(text, str):
        raise ConfigError(f"bootstrap.servers: {text!r} is not text")
    host, _, port = text.rpartition("://")[2].rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not all(each.isalnum() or each in "-%._:" for each in host) or not port.isdecimal():
        raise ConfigError(f"bootstrap.servers: {text!r} is not host:port")
    if not host or not 0 < int(port) < 65_536:
        raise ConfigError(f"bootstrap.servers: {text!r} has no host, or no port from 1 to 65535")
    return host, int(port)
