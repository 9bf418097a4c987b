"""The coordinators of a producer's transactions, and of the groups whose offsets it stores."""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.transport import Transport
    from wire.schemas.api_versions import ApiVersionsResponse
    from wire.schemas.find_coordinator import FindCoordinatorResponse

_V2 = 2
"""From this level of the feature transaction.version on, requests themselves add partitions and
offsets to the transaction, and each transaction has an epoch of its own (KIP-890)."""
_EPOCHS_SINCE = 3

_NEWEST_OF_V1: dict[int, int] = {
    ApiKey.PRODUCE: 11,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
    ApiKey.INIT_PRODUCER_ID: 5,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
}
_NEWEST_OF_V2: dict[int, int] = {
    ApiKey.TXN_OFFSET_COMMIT: 5,  # later versions name topics by id; a group outlives an id
    ApiKey.INIT_PRODUCER_ID: 5,  # later versions are for two-phase commit
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,  # later versions are for brokers
}


class Coordinators:
    """The nodes and versions for requests about transactions. Never waits."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._nodes: dict[str | None, int] = {}
        self._served: dict[int, tuple[int, int]] | None = None
        self.offers_v2 = False
        """True if the last known transaction.version of the cluster is at least 2."""

    def node(self, group: str | None) -> int | None:
        """Return the coordinator of a group, or of the transactions (None), if known."""
        return self._nodes.get(group)

    @property
    def knows_versions(self) -> bool:
        return self._served is not None

    @property
    def raises_epochs(self) -> bool:
        """True if InitProducerId can raise the epoch of an existing producer id (KIP-360)."""
        served = self._served or {}
        return served.get(ApiKey.INIT_PRODUCER_ID, (0, 0))[1] >= _EPOCHS_SINCE

    def found(self, group: str | None, response: FindCoordinatorResponse) -> None:
        """Take a coordinator from `response`. Requires: no error."""
        each = response.coordinators[0] if response.coordinators else response
        self._nodes[group] = self._transport.set_coordinator(each.node_id, each.host, each.port)

    def lost(self, group: str | None) -> None:
        self._nodes.pop(group, None)
        if group is None:
            self._served = None

    def take_versions(self, response: ApiVersionsResponse) -> None:
        self._served = {
            each.api_key: (each.min_version, each.max_version) for each in response.api_keys
        }
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        self.offers_v2 = levels.get("transaction.version", 0) >= _V2

    def version(self, kind: type[Any], node_id: int, *, is_v2: bool) -> int:
        """Return the newest version of a request that the node and the kind of transaction take."""
        known = declaration(kind)
        api_key = known.api
        assert api_key is not None, kind
        served = self._transport.versions(node_id) or self._served or {}
        limits = _NEWEST_OF_V2 if is_v2 else _NEWEST_OF_V1
        newest = limits.get(api_key, known.last_version)
        return min(newest, known.last_version, served.get(api_key, (0, newest))[1])
