"""The calls that replication needs to the other brokers and to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.config import BrokerConfig
    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.runtime.pending import Pending
    from wire.schema import R, Request


class Membership(Protocol):
    """The calls of a broker that is one of several in its cluster. Callable from any thread."""

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's present registration."""

    @property
    def config(self) -> BrokerConfig:
        """The settings of this broker."""

    def send(self, node_id: int, request: Request[R], *, timeout_ms: int) -> Pending[R]:
        """Send a request, at its newest version, to `Broker.handle` of another broker.

        The pending fails with `errors.Network` or `errors.RequestTimedOut`.
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
        """Propose an ISR to the controller: `isr` has (node id, broker epoch) pairs.

        The pending fails with the controller's refusal, or with the errors of `send`.
        """

    def epoch_of(self, node_id: int) -> int:
        """Return the newest epoch that this broker knows of a broker's registration, or -1."""

    def is_eligible(self, node_id: int) -> bool:
        """Return whether the broker may join an ISR: registered, not fenced, not about to stop."""

    def rack_of(self, node_id: int) -> str | None:
        """Return the rack of a broker, or None if it has none."""
