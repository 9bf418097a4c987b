"""`ConsumerParts`: the objects that all parts of one consumer share."""

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
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.consumer.subscription_state import SubscriptionState
    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schema import R, Request


class ConsumerParts:
    """Objects that the parts of one consumer share; none is replaced while the consumer lives."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        subscription: SubscriptionState,
        settings: Settings,
        arrived: Callable[[Pending[Any]], None],
    ) -> None:
        self.transport = transport
        self.metadata = metadata
        self.subscription = subscription
        self.settings = settings
        self.arrived = arrived
        """Called when an answer for one of the parts has arrived. Any thread may make the call."""
        self.interceptors: InterceptorChain | None = None
        self.counts = dict.fromkeys(TOTALS, 0)
        """The value of each metric in `TOTALS`; the parts add to them."""

    @property
    def heartbeat_interval_ms(self) -> int:
        """heartbeat.interval.ms, or its default for the transport."""
        in_process = self.transport.in_process
        default = IN_PROCESS_HEARTBEAT_INTERVAL_MS if in_process else HEARTBEAT_INTERVAL_MS
        return self.settings["heartbeat.interval.ms"] or default

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
