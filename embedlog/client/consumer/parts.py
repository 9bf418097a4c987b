"""`ConsumerParts`: the objects that all parts of one consumer share.

Share consumers need some of them, too: `ClientParts`.
"""

from __future__ import annotations

from embedlog.client.consumer.settings import (
    HEARTBEAT_INTERVAL_MS,
    IN_PROCESS_HEARTBEAT_INTERVAL_MS,
)

TOTALS = (
    "bytes-consumed-total",
    "commit-total",
    "failed-rebalance-total",
    "fetch-total",
    "heartbeat-total",
    "join-total",
    "rebalance-total",
    "records-consumed-total",
    "sync-total",
)
"""Kafka's names of the metrics that are counters."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from embedlog.client.consumer.subscription_state import SubscriptionState
    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schema import R, Request


class ClientParts:
    """Objects that the parts of one client share; none is replaced while the client lives."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        settings: Settings,
        arrived: Callable[[Pending[Any]], None],
        totals: Iterable[str],
    ) -> None:
        self.transport = transport
        self.metadata = metadata
        self.settings = settings
        self.arrived = arrived
        """Called when an answer for one of the parts has arrived. Any thread may make the call."""
        self.counts = dict.fromkeys(totals, 0)
        """The value of each metric in `totals`; the parts add to them."""

    def send(
        self,
        node_id: int,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Pending[R]:
        """Send a request. If the answer is not there at once, its arrival calls `arrived`."""
        pending = self.transport.send(node_id, request, version=version, timeout_ms=timeout_ms)
        if not pending.done():
            pending.add_callback(self.arrived)
        return pending


class ConsumerParts(ClientParts):
    """Objects that the parts of one consumer share."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        subscription: SubscriptionState,
        settings: Settings,
        arrived: Callable[[Pending[Any]], None],
    ) -> None:
        super().__init__(transport, metadata, settings, arrived, TOTALS)
        self.subscription = subscription
        self.interceptors: InterceptorChain | None = None

    @property
    def heartbeat_interval_ms(self) -> int:
        """heartbeat.interval.ms, or its default for the transport."""
        in_process = self.transport.in_process
        default = IN_PROCESS_HEARTBEAT_INTERVAL_MS if in_process else HEARTBEAT_INTERVAL_MS
        return self.settings["heartbeat.interval.ms"] or default
