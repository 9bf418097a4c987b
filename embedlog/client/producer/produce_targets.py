"""Produce requests over the network: of one batch by what its partition's requests share."""

from __future__ import annotations

from wire.produce_template import ProduceTarget, RecordsRequest
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.network.network_client import NetworkClient
    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.client.producer.producer_settings import SenderSettings
    from embedlog.pending import Pending
    from embedlog.transport import Transport


class ProduceTargets:
    """Makes the requests of one sender, and sends them."""

    __slots__ = ("_client", "_metadata", "_settings", "_transport")

    def __init__(self, transport: Transport, metadata: Metadata, settings: SenderSettings) -> None:
        self._transport = transport
        self._metadata = metadata
        self._settings = settings
        self._client = _network_client(transport) if settings.acks else None

    def hold(self) -> None:
        """Gather what is sent until `release`: one write for several requests."""
        if self._client is not None:
            self._client.hold()

    def release(self) -> None:
        """Write what was gathered since `hold`."""
        if self._client is not None:
            self._client.release()

    def send(
        self, node_id: int, batches: list[ProducerBatch], sent: Pending[Any]
    ) -> Pending[Any] | None:
        """Send encoded batches, each of another partition; who gets the answer, None for `sent`.

        One batch goes as its partition's last one did, all but the records: that takes 4 us, where
        making the messages takes 25.
        """
        if self._client is not None and len(batches) == 1:
            self._client.send_records(node_id, self._alike(batches[0]), sent)
            return None
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name = batch.topic
            batch.topic_id = self._metadata.topics[name].topic_id
            assert type(batch.encoded) is bytes, batch
            data = PartitionProduceData(index=batch.partition, records=batch.encoded)
            if name in topics:
                topics[name].partition_data.append(data)
            else:
                topics[name] = TopicProduceData(
                    name=name, topic_id=batch.topic_id, partition_data=[data]
                )
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[*topics.values()],
        )
        return self._transport.send(node_id, request)

    def _alike(self, batch: ProducerBatch) -> RecordsRequest:
        assert type(batch.encoded) is bytes, batch
        target = batch.queue.target
        topic_id = batch.topic_id = self._metadata.topics[batch.topic].topic_id
        if target is None or target.topic_id != topic_id:
            target = batch.queue.target = ProduceTarget(
                name=batch.topic,
                topic_id=topic_id,
                index=batch.partition,
                acks=self._settings.acks,
                timeout_ms=self._settings.request_timeout_ms,
            )
        return RecordsRequest(target, batch.encoded)


def _network_client(transport: Transport) -> NetworkClient | None:
    """The transport, if it makes bytes of what is sent."""
    if transport.in_process:
        return None
    from embedlog.client.network.network_client import NetworkClient

    return transport if isinstance(transport, NetworkClient) else None
