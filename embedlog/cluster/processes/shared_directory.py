"""`SharedDirectory`: what a data directory tells other processes about its owner.

    .lock               the owner's pid and addresses: see `runtime.lock_owner`
    meta.properties     the ids of the cluster and of the node

The port of an owner that may choose is computed from the cluster's id and the directory's path. So
the next owner has the same port, and clients connect to it again. The path is part of it because a
copied directory has the same cluster id.

Ports start at 20000, below the ports that systems give to outgoing connections: Linux from 32768
on, other systems from 49152. A client that connects to such a port while nobody listens may get the
port for itself: it would be connected to itself, and the next owner could not listen.
"""

from __future__ import annotations

from zlib import crc32

from embedlog.client.connect import parse_address
from embedlog.client.network.bootstrap import FoundNode
from embedlog.errors import ConfigError, DirectoryLocked
from embedlog.runtime.lock_owner import addresses_in
from embedlog.storage import paths
from embedlog.storage.directory.meta_properties import read_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.files import Files

LOOPBACK = "127.0.0.1"
_LOOPBACK_OF = {"0.0.0.0": LOOPBACK, "::": "::1"}
_PORT_FIRST = 20_000
_PORT_COUNT = 12_000
_PORT_STEP = 1_009
_ATTEMPTS = 8


class SharedDirectory:
    """A data directory as a process sees it that does not have it open."""

    def __init__(self, files: Files, path: str) -> None:
        """`path` is absolute; the directory may not exist yet."""
        self._files = files
        self.path = path
        self._identity: tuple[str, int] | None = None

    def identity(self) -> tuple[str, int] | None:
        """Return the ids of the cluster and the node; None before the first owner named them."""
        if self._identity is None:
            found = read_properties(self._files, f"{self.path}/{paths.META_PROPERTIES}")
            cluster_id, node_id = found.get("cluster.id"), found.get("node.id", "")
            if cluster_id and node_id.isdecimal():
                self._identity = cluster_id, int(node_id)
        return self._identity

    def addresses(self) -> list[str]:
        """Return the addresses in the lock file, "host:port".

        The present owner listens there, or an owner that died did.
        """
        try:
            content = self._files.read(f"{self.path}/{paths.LOCK}")
        except OSError:
            return []
        return addresses_in(content.decode("utf-8", "replace"))

    def nodes(self) -> list[FoundNode]:
        """Return where to try to reach the owner, and its identity; at least one address.

        Requires: the identity is known.
        """
        identity = self.identity()
        assert identity is not None, self.path
        cluster_id, node_id = identity
        found = [place for each in self.addresses() if (place := _place(each)) is not None]
        if not found:
            # The owner does not listen yet. If its port is free, it will listen there.
            found = [(LOOPBACK, next(ports(cluster_id, self.path)))]
        return [FoundNode(host, port, cluster_id, node_id) for host, port in found]

    def is_free(self) -> bool:
        """Return whether no process has the directory open.

        Raises:
            OSError: this process may not lock the directory.
        """
        try:
            self._files.lock(f"{self.path}/{paths.LOCK}", names_owner=False).close()
        except DirectoryLocked:
            return False
        return True


def ports(cluster_id: str, path: str) -> Iterator[int]:
    """Return the ports that an owner tries, always in the same order; the last is 0, any port."""
    first = crc32(f"{cluster_id} {path}".encode())
    for attempt in range(_ATTEMPTS):
        yield _PORT_FIRST + (first + attempt * _PORT_STEP) % _PORT_COUNT
    yield 0


def _place(address: str) -> tuple[str, int] | None:
    """Return the host and port of an address in a lock file, None if it is torn."""
    try:
        host, port = parse_address(address)
    except ConfigError:
        return None
    return _LOOPBACK_OF.get(host, host), port
