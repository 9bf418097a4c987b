"""`ClusterNodes`: the brokers that a client knows, and what the transport is told of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.transport import Transport
    from wire.schemas.fetch import NodeEndpoint as EndpointInFetch
    from wire.schemas.metadata import MetadataResponse
    from wire.schemas.produce import NodeEndpoint


class Node:
    """A broker: its id, where it listens, its rack; fenced while it is registered and not there."""

    __slots__ = ("host", "is_fenced", "node_id", "port", "rack")

    def __init__(
        self, node_id: int, host: str, port: int, rack: str | None, *, is_fenced: bool = False
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced

    def __repr__(self) -> str:
        return f"Node({self.node_id}, {self.host!r}, {self.port})"


class ClusterNodes:
    """As last heard. `by_id` is replaced, never changed: reading it is free."""

    __slots__ = ("_transport", "by_id", "cluster_id", "controller_id")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.by_id: dict[int, Node] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        """Where each of them listens."""
        return {each.node_id: (each.host, each.port) for each in self.by_id.values()}

    def take(self, response: MetadataResponse) -> None:
        """These are all."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.by_id = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        self._tell()

    def with_endpoints(
        self, endpoints: Iterable[NodeEndpoint | EndpointInFetch]
    ) -> dict[int, Node]:
        """These and the ones that a broker named beside a leader."""
        named = {e.node_id: Node(e.node_id, e.host, e.port, e.rack) for e in endpoints}
        return {**self.by_id, **named}

    def replace(self, nodes: dict[int, Node]) -> None:
        """These are all, of the same cluster."""
        self.by_id = nodes
        self._tell()

    def bootstrap_again(self) -> None:
        """They are doubted: the first addresses are asked who they are."""
        self.cluster_id = None
        self._transport.bootstrap_again()

    def _tell(self) -> None:
        self._transport.set_nodes(self.addresses, self.cluster_id)
