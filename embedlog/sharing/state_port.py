"""The share coordinator as a leader sees it: it stores the states of deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from embedlog.common import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime.pending import Pending

    Place = tuple[bytes, int]
    """A partition: topic id and number."""


class StateBatch(Value):
    """Offsets with one delivery state and one delivery count; `last_offset` is inclusive."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class ShareState(Value):
    """The stored state of a share partition; a start offset of -1 is undecided."""

    state_epoch: int
    start_offset: int
    batches: list[StateBatch]


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
