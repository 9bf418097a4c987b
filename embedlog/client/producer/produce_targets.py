"""What a sender's requests over the network are for: a target for each partition."""

from __future__ import annotations

from wire.produce_template import ProduceTarget, RecordsRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.network.network_client import NetworkClient
    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.pending import Pending
    from embedlog.transport import Transport


class ProduceTargets:
    """Makes the requests that hold one batch."""

    __slots__ = ("_acks", "_client", "_metadata", "_timeout_ms", "hold", "release")

    def __init__(
        self, client: NetworkClient, metadata: Metadata, acks: int, timeout_ms: int
    ) -> None:
        self._client = client
        self.hold = client.hold
        self.release = client.release
        self._metadata = metadata
        self._acks = acks
        self._timeout_ms = timeout_ms

    def send(self, node_id: int, batch: ProducerBatch, pending: Pending[Any]) -> None:
        """Send the request for a batch, as `request`; `pending` gets the answer."""
        self._client.send_records(node_id, self.request(batch), pending)

    def request(self, batch: ProducerBatch) -> RecordsRequest:
        """The request for a batch. Requires: it is encoded, and its topic is known."""
        assert type(batch.encoded) is bytes, batch
        target = batch.queue.target
        topic_id = batch.topic_id = self._metadata.topics[batch.topic].topic_id
        if target is None or target.topic_id != topic_id:
            target = batch.queue.target = ProduceTarget(
                name=batch.topic,
                topic_id=topic_id,
                index=batch.partition,
                acks=self._acks,
                timeout_ms=self._timeout_ms,
            )
        return RecordsRequest(target, batch.encoded)


def targets_of(
    transport: Transport, metadata: Metadata, acks: int, timeout_ms: int
) -> ProduceTargets | None:
    """The targets, if the transport makes bytes of what is sent."""
    from embedlog.client.network.network_client import NetworkClient

    if not isinstance(transport, NetworkClient):
        return None
    return ProduceTargets(transport, metadata, acks, timeout_ms)
