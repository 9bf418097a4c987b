"""The bootstrap addresses of a cluster, resolved when a client is made.

An unknown name is usually a mistake in the configuration. The constructor reports it, while the
user still watches. `client.dns.lookup` decides how a name is used:

    use_all_dns_ips      the name stays; its addresses are tried one after the other
    resolve_canonical_   the canonical names of its addresses replace it, as Kerberos and TLS
      bootstrap_...      need them; their addresses are tried one after the other

A data directory that several processes share names other addresses in the course of time. A client
of it has a function in place of the list, and calls it whenever it knows no node that answers.
"""

from __future__ import annotations

from embedlog.common import Value
from embedlog.errors import ConfigError
from embedlog.user_warnings import warn_user
from wire.net.resolver import canonical_names, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Address = tuple[str, int]
    Find = Callable[[], Sequence["FoundNode"]]


class FoundNode(Value):
    """The address of a node, and the identity that the node at this address must have."""

    host: str
    port: int
    cluster_id: str
    node_id: int


def known_addresses(addresses: Sequence[Address], lookup: str) -> list[Address]:
    """Return the addresses that can be resolved; warn of each that cannot.

    Raises:
        ConfigError: no address can be resolved, or a canonical name is unknown.
    """
    known: list[Address] = []
    unknown: list[str] = []
    for host, port in addresses:
        names = [host] if lookup == "use_all_dns_ips" else _canonical(host)
        for name in names:
            try:
                resolve(name, port)
            except OSError as error:
                unknown.append(f"cannot resolve {name!r}: {error.strerror or error}")
            else:
                known.append((name, port))
    if not known:
        reasons = "; ".join(unknown)
        raise ConfigError(f"No resolvable bootstrap urls given in bootstrap.servers: {reasons}")
    for reason in unknown:
        warn_user(f"bootstrap.servers: {reason}")
    return known


def _canonical(host: str) -> list[str]:
    try:
        return canonical_names(host)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"Unknown host in bootstrap.servers: {host!r}: {reason}") from None
