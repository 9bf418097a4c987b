"""The other brokers and the controller, as replication sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.config import BrokerConfig
    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.runtime.pending import Pending
    from wire.schema import R, Request


class Membership(Protocol):
    """This broker as a member of a cluster of several. Callable from any thread."""

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration."""

    @property
    def config(self) -> BrokerConfig:
        """The settings of this broker."""

    def send(self, node_id: int, request: Request[R], *, timeout_ms: int) -> Pending[R]:
        """Send to the door of another broker, at the newest version.

        Fails with `errors.Network` or `errors.RequestTimedOut`.
        """

    def alter_partition(
        self,
        topic_id: bytes,
        partition: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
        is_recovering: bool,
    ) -> Pending[LeaderAndIsr]:
        """Ask the controller for another ISR, given as (node id, broker epoch).

        Fails with the controller's refusal, or as `send` does.
        """

    def epoch_of(self, node_id: int) -> int:
        """Return the epoch of a broker's registration as this broker knows it, or -1."""

    def is_eligible(self, node_id: int) -> bool:
        """May the broker join an ISR: is it registered, not fenced, and not about to stop?"""

    def rack_of(self, node_id: int) -> str | None:
        """Return the rack of a broker, or None if it has none."""
