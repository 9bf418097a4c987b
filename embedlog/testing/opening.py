"""`open_cluster`: the cluster of a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embedlog.client.admin.new_topics import CreatedTopic
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.handles.cluster_listener import ClusterListener
from embedlog.runtime import Runtime
from embedlog.runtime.files import Files
from embedlog.server.addresses import BrokerListener
from embedlog.testing.shape import Shape
from embedlog.testing.time.runtimes import kit_runtime


def open_cluster(
    shape: Shape,
    files: Files | None = None,
    *,
    ahead_ms: int = 0,
    cluster_id: str | None = None,
    runtime: Runtime | None = None,
) -> Cluster:
    """Open a cluster of this shape, over `files` in memory if they are given.

    `ahead_ms`: see `MovedClock`. `cluster_id` names a new cluster. `runtime` replaces the shape's.
    """
    return Cluster(
        shape.path,
        shape.settings(),
        brokers=shape.brokers if files is None else None,
        racks=shape.racks if files is None else (),
        cluster_id=cluster_id or shape.cluster_id,
        is_embedded=shape.instant,
        runtime=runtime or _runtime(shape, files, ahead_ms),
    )


def _runtime(shape: Shape, files: Files | None, ahead_ms: int) -> Runtime:
    if files is None and shape.path is not None:
        from embedlog.runtime.os_files import OsFiles

        files = OsFiles()
    return kit_runtime(shape.clock, files, ahead_ms=ahead_ms)


def create_topic(cluster: Cluster, shape: Shape, name: str) -> CreatedTopic:
    """Create one topic of a shape."""
    given = shape.topics[name]
    arguments = dict(given) if isinstance(given, Mapping) else {"partitions": given}
    return cluster.create_topic(name, **arguments)


def create_topics(cluster: Cluster, shape: Shape) -> None:
    """Create the topics of a shape."""
    for name in shape.topics:
        create_topic(cluster, shape, name)


ListenAgain = Callable[[Cluster, Mapping[int, int]], BrokerListener | ClusterListener]


def listen_again(cluster: Cluster, ports: Mapping[int, int]) -> BrokerListener | ClusterListener:
    """Serve a cluster at the ports of its predecessor."""
    return cluster.listen("127.0.0.1", ports)


def ports_of(cluster: Cluster) -> dict[int, int]:
    """Return the port of each broker that has an address, by the broker's number."""
    return {
        node.node_id: int(node.address.rpartition(":")[2])
        for node in cluster.brokers
        if node.address is not None
    }
