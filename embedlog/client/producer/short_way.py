"""The short way from the accumulator to a broker in this process, for a lone batch.

What happens by thousands (one partition has one batch ready, the broker takes it in the call) needs
little of a sender's pass. Whatever is not as usual is left to the pass, untouched.
"""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.pending import Pending
from embedlog.transport import InProcessTransport
from wire.records.built import BuiltBatch
from wire.schema import bare
from wire.schemas.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.producer.sender import Sender
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class ShortWay:
    """For a sender without sequences and compression that asks for acknowledgements."""

    __slots__ = ("_accumulator", "_acks", "_metadata", "_size_max", "_timeout_ms", "_transport")

    def __init__(
        self,
        transport: InProcessTransport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        settings: Settings,
        acks: int,
    ) -> None:
        assert acks != 0, "nobody would tell the offset"
        self._transport = transport
        self._metadata = metadata
        self._accumulator = accumulator
        self._acks = acks
        self._timeout_ms: int = settings["request.timeout.ms"]
        self._size_max: int = settings["max.request.size"]

    def send(self, sender: Sender) -> bool:
        """Send and settle one batch; False when a pass has to see to the rest, or to all.

        Requires: the sender's turn, and nothing in flight.
        """
        metadata = self._metadata
        if metadata.is_asking:
            return False
        accumulator = self._accumulator
        with accumulator.lock:
            batch = self._ready_batch()
            if batch is None:
                return False
            topic = metadata.topics.get(batch.topic)
            if topic is None or batch.partition >= len(topic.partitions):
                return False
            node_id = topic.partitions[batch.partition].leader
            if node_id < 0:
                return False
            queue = batch.queue
            queue.batches.popleft()
            if not queue.batches:
                del accumulator.active[queue]
        is_asked = False
        try:
            encoded = batch.encoded or batch.encode_built()
            if type(encoded) is not BuiltBatch or encoded.size > self._size_max:
                accumulator.put_back(batch)
                return False
            batch.topic_id = topic.topic_id
            request = self._request(batch, topic.topic_id, encoded)
            is_asked = True
            answer = self._transport.ask(request, is_awaited=batch.is_wanted)
        except EmbedlogError as error:
            answer = Pending()
            answer.fail(error)
        except BaseException as error:
            if is_asked or isinstance(error, Exception):
                sender.defect(batch, error)
            else:
                accumulator.put_back(batch)  # Ctrl-C came in time
            raise
        if type(answer) is ProduceResponse and batch.callbacks is None:
            (answers,) = answer.responses
            (written,) = answers.partition_responses
            if written.error_code == 0:
                batch.succeed(written.base_offset, written.log_append_time_ms)
                batch.finish()
                accumulator.finished(batch)
                sender.sent_count += batch.record_count
                sender.arrived()
                return True
        sender.follow(batch, node_id, answer)
        return False

    def _request(
        self, batch: ProducerBatch, topic_id: bytes, encoded: BuiltBatch
    ) -> ProduceRequest:
        """The request for one batch, filled field by field as there is one for every send."""
        data = bare(PartitionProduceData)
        data.index = batch.partition
        data.records = encoded
        named = bare(TopicProduceData)
        named.name = batch.topic
        named.topic_id = topic_id
        named.partition_data = [data]
        request = bare(ProduceRequest)
        request.transactional_id = None
        request.acks = self._acks
        request.timeout_ms = self._timeout_ms
        request.topic_data = [named]
        return request

    def _ready_batch(self) -> ProducerBatch | None:
        """The only batch that could be sent, closed. Requires: the lock."""
        accumulator = self._accumulator
        if len(accumulator.active) != 1:
            return None
        (queue,) = accumulator.active
        batch = queue.batches[0]
        if batch.retry_at_ms:
            return None
        if not batch.is_closed:
            if not batch.is_wanted:
                return None
            queue.close_open()
            accumulator.produced(queue, batch.size, is_full=True)
        return batch


def find_short_way(
    transport: Transport,
    metadata: Metadata,
    accumulator: RecordAccumulator,
    settings: Settings,
    acks: int,
) -> ShortWay | None:
    """The short way, if the broker is in this process and answers."""
    if acks == 0 or not isinstance(transport, InProcessTransport):
        return None
    return ShortWay(transport, metadata, accumulator, settings, acks)
