"""`open_cluster`: the cluster of a shape."""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.cluster.cluster import Cluster
from embedlog.config.broker_config import normalise_names
from embedlog.runtime import Runtime
from embedlog.runtime.files import Files
from embedlog.testing.shape import Shape
from embedlog.testing.time.runtimes import kit_runtime


def open_cluster(
    shape: Shape,
    files: Files | None = None,
    *,
    ahead_ms: int = 0,
    cluster_id: str | None = None,
) -> Cluster:
    """Open a cluster of this shape, over `files` in memory if they are given.

    `ahead_ms`: see `MovedClock`. `cluster_id` names a new cluster.
    """
    return Cluster(
        shape.path,
        normalise_names(dict(shape.config)),
        brokers=shape.brokers if files is None else None,
        racks=shape.racks if files is None else (),
        cluster_id=cluster_id,
        is_embedded=True,
        runtime=_runtime(shape, files, ahead_ms),
    )


def _runtime(shape: Shape, files: Files | None, ahead_ms: int) -> Runtime:
    if files is None and shape.path is not None:
        from embedlog.runtime.os_files import OsFiles

        files = OsFiles()
    return kit_runtime(shape.clock, files, ahead_ms=ahead_ms)


def create_topics(cluster: Cluster, shape: Shape) -> None:
    """Create the topics of a shape."""
    for name, given in shape.topics.items():
        arguments = dict(given) if isinstance(given, Mapping) else {"partitions": given}
        cluster.create_topic(name, **arguments)


def ports_of(cluster: Cluster) -> dict[int, int]:
    """Return the port of each broker that has an address, by the broker's number."""
    return {
        node.node_id: int(node.address.rpartition(":")[2])
        for node in cluster.brokers
        if node.address is not None
    }
