"""`Shared`: the parts that all brokers of one cluster have in common."""

from __future__ import annotations

from embedlog.cluster.controller_host import ControllerHost
from embedlog.cluster.faults.network import ClusterNetwork
from embedlog.cluster.interception import Interception
from embedlog.cluster.presence import Presence
from embedlog.common import Value
from embedlog.runtime import Runtime


class Shared(Value):
    """The common parts, which each broker of a cluster of several gets."""

    runtime: Runtime
    network: ClusterNetwork
    host: ControllerHost
    presences: dict[int, Presence]
    """All brokers by number; a broker that joins adds itself."""
    on_disk: bool
    """False if the files are in memory."""
    durability: str
    interception: Interception
