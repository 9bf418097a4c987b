"""The lanes that a sender's requests over the network take: one for each partition."""

from __future__ import annotations

from wire.produce_lane import LaneRequest, ProduceLane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.metadata import Metadata
    from embedlog.client.network.network_client import NetworkClient
    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.transport import Transport


class ProduceLanes:
    """Makes the requests that hold one batch."""

    __slots__ = ("_acks", "_metadata", "_timeout_ms", "hold", "release")

    def __init__(
        self, client: NetworkClient, metadata: Metadata, acks: int, timeout_ms: int
    ) -> None:
        self.hold = client.hold
        self.release = client.release
        self._metadata = metadata
        self._acks = acks
        self._timeout_ms = timeout_ms

    def request(self, batch: ProducerBatch) -> LaneRequest:
        """The request for a batch. Requires: it is encoded, and its topic is known."""
        assert type(batch.encoded) is bytes, batch
        lane = batch.queue.lane
        topic_id = self._metadata.topics[batch.topic].topic_id
        if lane is None or lane.topic_id != topic_id:
            lane = batch.queue.lane = ProduceLane(
                name=batch.topic,
                topic_id=topic_id,
                index=batch.partition,
                acks=self._acks,
                timeout_ms=self._timeout_ms,
            )
        return LaneRequest(lane, batch.encoded)


def lanes_of(
    transport: Transport, metadata: Metadata, acks: int, timeout_ms: int
) -> ProduceLanes | None:
    """The lanes, if the transport makes bytes of what is sent."""
    from embedlog.client.network.network_client import NetworkClient

    if not isinstance(transport, NetworkClient):
        return None
    return ProduceLanes(transport, metadata, acks, timeout_ms)
