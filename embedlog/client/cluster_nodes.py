"""`ClusterNodes`: the brokers that a client knows; the transport gets their addresses."""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.transport import Transport
    from wire.schemas.fetch import NodeEndpoint as EndpointInFetch
    from wire.schemas.metadata import MetadataResponse
    from wire.schemas.produce import NodeEndpoint


class Node(Value):
    """A broker. It is fenced if it is registered but does not send heartbeats."""

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False

    def __repr__(self) -> str:
        return f"Node({self.node_id}, {self.host!r}, {self.port})"


class ClusterNodes:
    """The brokers of the last answer. `by_id` is replaced, never changed: it needs no lock."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.by_id: dict[int, Node] = {}
        self.cluster_id: str | None = None
        self.controller_id = -1

    @property
    def addresses(self) -> dict[int, tuple[str, int]]:
        return {each.node_id: (each.host, each.port) for each in self.by_id.values()}

    def take(self, response: MetadataResponse) -> None:
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
        """Return the known brokers and the `endpoints` that a broker sent with a new leader."""
        named = {e.node_id: Node(e.node_id, e.host, e.port, e.rack) for e in endpoints}
        return {**self.by_id, **named}

    def replace(self, nodes: dict[int, Node]) -> None:
        self.by_id = nodes
        self._tell()

    def bootstrap_again(self) -> None:
        """Distrust the known brokers, and let the transport ask the bootstrap addresses again."""
        self.cluster_id = None
        self._transport.bootstrap_again()

    def _tell(self) -> None:
        self._transport.set_nodes(self.addresses, self.cluster_id)
