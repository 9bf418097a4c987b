"""`NodeConnections`: the connections of one client, and the choice of one for a request."""

from __future__ import annotations

from embedlog.transport import BOOTSTRAP_NODES, COORDINATOR_NODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from embedlog.client.network.bootstrap import Find
    from embedlog.client.network.node_connection import NodeConnection


class NodeConnections:
    """Connections to the cluster's nodes, to coordinators, and to the bootstrap addresses."""

    def __init__(
        self,
        addresses: Sequence[tuple[str, int]],
        make: Callable[[int, str, int], NodeConnection],
        drop: Callable[[NodeConnection, str], None],
        *,
        below: Callable[[int], int],
        returns_to_bootstrap: bool,
        checks_identity: bool,
        find: Find | None = None,
    ) -> None:
        """`make(node_id, host, port)` makes a connection, `drop(connection, reason)` closes it;
        `below` draws a random number.

        `returns_to_bootstrap`: use the bootstrap addresses again when no node can be reached. With
        `checks_identity` as well, let each node check that it is the node of the cluster that the
        client expects (KIP-1242). `find` returns the present bootstrap addresses, at least one: it
        is called before each use of them, and replaces `addresses`.
        """
        self._find = find
        self._make = make
        self._drop = drop
        self._below = below
        self._returns = returns_to_bootstrap
        self._checks_identity = checks_identity and returns_to_bootstrap
        self._cluster_id: str | None = None
        self._nodes: dict[int, NodeConnection] = {}
        """The cluster's nodes, once Metadata named them."""
        self._coordinators: dict[int, NodeConnection] = {}
        """Second connections, for coordinators; the key is COORDINATOR_NODES - node id."""
        self._bootstrap = {
            BOOTSTRAP_NODES - index: make(BOOTSTRAP_NODES - index, *address)
            for index, address in enumerate(addresses)
        }

    def all(self) -> list[NodeConnection]:
        return [
            *self._nodes.values(),
            *self._coordinators.values(),
            *self._bootstrap.values(),
        ]

    def of(self, node_id: int) -> NodeConnection | None:
        """Return the connection for requests to `node_id`; None if the node is unknown."""
        found = self._nodes.get(node_id) or self._coordinators.get(node_id)
        return found or self._bootstrap.get(node_id)

    def least_loaded(self, now_ms: int) -> NodeConnection:
        """Return the connection that most likely answers first.

        The best is ready and has the fewest requests; the next best is being connected. Then comes
        an unconnected one whose back-off is over, the oldest attempt first. Bootstrap addresses
        count while the cluster's nodes are unknown, or if all nodes fail and
        metadata.recovery.strategy allows it.
        """
        candidates = list(self._nodes.values())
        is_lost = self._returns and all(each.failure_count for each in candidates)
        if is_lost or not candidates:
            if self._find is not None:
                self._find_again(self._find)
            candidates += self._bootstrap.values()
        start = self._below(len(candidates))
        candidates = candidates[start:] + candidates[:start]
        return min(candidates, key=lambda each: each.rank(now_ms))

    def _find_again(self, find: Find) -> None:
        """Take the present bootstrap addresses; close the connections to former ones."""
        found = {BOOTSTRAP_NODES - index: each for index, each in enumerate(find())}
        for chosen, node in found.items():
            known = self._bootstrap.get(chosen)
            if known is None or (known.host, known.port) != (node.host, node.port):
                if known is not None:
                    self._drop(known, "the node has a new address")
                self._bootstrap[chosen] = self._make(chosen, node.host, node.port)
            self._bootstrap[chosen].setup.expect(node.cluster_id, node.node_id)
        for chosen in [each for each in self._bootstrap if each not in found]:
            self._drop(self._bootstrap.pop(chosen), "no node has this address")

    def set_nodes(
        self, nodes: Mapping[int, tuple[str, int]], cluster_id: str | None = None
    ) -> None:
        """Set the cluster's nodes and their addresses; close the connections to other nodes."""
        self._cluster_id = cluster_id if self._checks_identity else None
        for node_id, (host, port) in nodes.items():
            known = self._nodes.get(node_id)
            if known is None or (known.host, known.port) != (host, port):
                if known is not None:
                    self._drop(known, "the node has a new address")
                self._nodes[node_id] = self._make(node_id, host, port)
        for node_id in [each for each in self._nodes if each not in nodes]:
            self._drop(self._nodes.pop(node_id), "the node left the cluster")
        for node_id, connection in self._nodes.items():
            connection.setup.expect(self._cluster_id, node_id)
        for chosen, connection in self._coordinators.items():
            connection.setup.expect(self._cluster_id, COORDINATOR_NODES - chosen)
        for connection in self._bootstrap.values():
            if nodes and connection.channel is not None and not connection.requests.count:
                self._drop(connection, "the cluster's own addresses are known")

    def set_coordinator(self, node_id: int, host: str, port: int) -> int:
        """Return the id for requests over a second connection to that node; make it if needed."""
        chosen = COORDINATOR_NODES - node_id
        known = self._coordinators.get(chosen)
        if known is None or (known.host, known.port) != (host, port):
            if known is not None:
                self._drop(known, "the coordinator has a new address")
            self._coordinators[chosen] = made = self._make(chosen, host, port)
            made.setup.expect(self._cluster_id, node_id)
        return chosen

    def forget_nodes(self) -> None:
        if self._returns:
            self.set_nodes({})
