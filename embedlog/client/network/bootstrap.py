"""The first addresses of a cluster, looked up before a client comes to be.

A name that nobody knows is a mistake in the configuration most of the time, and is told while the
one who made it still looks: by the constructor. `client.dns.lookup` says what becomes of a name:

    use_all_dns_ips      it stays, and its addresses are tried one after the other
    resolve_canonical_   the names that its addresses go by take its place, so that Kerberos and
      bootstrap_...      TLS see those; then as above
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.user_warnings import warn_user
from wire.net.resolver import canonical_names, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Address = tuple[str, int]


def known_addresses(addresses: Sequence[Address], lookup: str) -> list[Address]:
    """Those of `addresses` that can be resolved; a warning for each that cannot.

    Raises:
        ConfigError: there is none; or, looking for canonical names, one is unknown.
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
