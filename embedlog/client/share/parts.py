"""`ShareParts`: the objects that all parts of one share consumer share."""

from __future__ import annotations

from embedlog.client.consumer.parts import ClientParts
from embedlog.client.share.acknowledgements import Outcomes
from embedlog.client.share.assignment import ShareAssignment
from embedlog.client.share.in_flight import InFlight
from embedlog.common import uuid_to_text

TOTALS = (
    "acknowledgements-error-total",
    "acknowledgements-send-total",
    "bytes-consumed-total",
    "fetch-total",
    "heartbeat-total",
    "rebalance-total",
    "records-consumed-total",
)
"""Kafka's names of the metrics that are counters."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


class ShareParts(ClientParts):
    """Objects that the parts of one share consumer share."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        settings: Settings,
        arrived: Callable[[Pending[Any]], None],
    ) -> None:
        super().__init__(transport, metadata, settings, arrived, TOTALS)
        self.assignment = ShareAssignment(metadata)
        self.in_flight = InFlight()
        self.outcomes = Outcomes(self.counts)
        self.member_id = uuid_to_text(transport.runtime.random.uuid())
        """The member's id, in its group and in its sessions, for the life of the consumer."""
