"""Looking up host names with the system's resolver. Every call may wait for the network."""

from __future__ import annotations

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


def resolve(host: str, port: int) -> list[Address]:
    """Return (family, socket address) for each address of `host`, in the resolver's order.

    Raises:
        OSError: `host` has no address.
    """
    try:
        # Pass the name as bytes: for text Python loads its tables of international names, which
        # takes 1 MB and 3 ms.
        name = host.encode() if host.isascii() else host.encode("idna")
    except UnicodeError as error:
        raise OSError(str(error)) from None
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]  # type: ignore[misc]


def canonical_names(host: str) -> list[str]:
    """Return the canonical name of each address of `host`; the numeric address if it has no name.

    Raises:
        OSError: `host` has no address.
    """
    names = [socket.getnameinfo(address, 0)[0] for _, address in resolve(host, 0)]
    return list(dict.fromkeys(names))
