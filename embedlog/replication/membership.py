"""What replication sees of the other brokers and of the controller: all that goes there."""

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
        """Of this broker's present registration."""

    @property
    def config(self) -> BrokerConfig:
        """This broker's settings."""

    def send(self, node_id: int, request: Request[R], *, timeout_ms: int) -> Pending[R]:
        """To the door of another broker, at the newest version.

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
        """Ask the controller for another set of (node id, broker epoch) in sync.

        Fails with the controller's refusal, or as `send` does.
        """

    def epoch_of(self, node_id: int) -> int:
        """Of a broker's registration as this one knows it, -1 for none."""

    def is_eligible(self, node_id: int) -> bool:
        """May it join the replicas in sync: registered, not fenced, not about to stop?"""

    def rack_of(self, node_id: int) -> str | None:
        """Where the broker stands, if it was told."""
