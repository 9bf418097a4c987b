"""The share coordinator as a leader sees it: it stores the states of deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.coordinator.share.state_client import Place, ShareState, StateBatch
    from embedlog.runtime.pending import Pending


class StatePort(Protocol):
    """Reads and writes the stored states. No call waits; a pending fails with a `KafkaError`."""

    def read(self, group_id: str, place: Place, leader_epoch: int) -> Pending[ShareState]:
        """Return the state of a share partition; later calls of older leaders are fenced."""

    def write(
        self,
        group_id: str,
        place: Place,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Pending[None]:
        """Store changes of a share partition."""
