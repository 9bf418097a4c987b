"""A simulated broker and the requests of a transaction, as a client would send them.

Tests answer markers by hand: `World.marker_codes` has the answers of some partitions,
`World.marker_code` is the answer of the others, and `World.markers` has the requests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.controller import features
from embedlog.coordinator.placement import partition_of
from embedlog.coordinator.records import TRANSACTION_RECORD_TYPES, RecordFormat
from embedlog.coordinator.transaction import states
from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from embedlog.errors import Network
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.topic_names import TRANSACTIONS_TOPIC
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.records import iter_batches
from wire.records.decode.choose import tuples
from wire.schema import declaration
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.schemas.end_txn import EndTxnRequest, EndTxnResponse
from wire.schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from wire.schemas.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

WAIT_MS = 60_000
TOPIC = "orders"


class Written(NamedTuple):
    """One record of `__transaction_state`."""

    state: str
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    partitions: list[int] | None
    client_version: int


class World:
    """One broker with a topic of three partitions, used by one test alone."""

    def __init__(
        self, runtime: SimRuntime | None = None, path: str | None = None, **settings: Any
    ) -> None:
        self.runtime = runtime or sim_runtime(seed=7)
        self.marker_code: int = ErrorCode.NONE
        self.marker_codes: dict[int, int] = {}
        """Partition -> its answer to a marker."""
        self.loses_markers = False
        """True: requests for markers are not answered, they fail."""
        self.marker_versions: list[tuple[int, int]] = []
        """The coordinator epoch and the transaction version of each request in `markers`."""
        self.markers: list[tuple[int, int, bool, dict[str, list[int]]]] = []
        self.cluster = Cluster(path, runtime=self.runtime, **settings)
        self.cluster.broker().core.interceptor = self._intercept
        assert topics.ensure_internal_topic(self.cluster.broker().core, TRANSACTIONS_TOPIC)
        if TOPIC not in self.cluster.topics:
            self.cluster.create_topic(TOPIC, 3)

    def _intercept(self, context: RequestContext, request: Any) -> Any:
        if context.api_key != ApiKey.WRITE_TXN_MARKERS:
            return None
        assert isinstance(request, WriteTxnMarkersRequest)
        (marker,) = request.markers
        asked = {topic.name: topic.partition_indexes for topic in marker.topics}
        result = marker.transaction_result
        self.markers.append((marker.producer_id, marker.producer_epoch, result, asked))
        self.marker_versions.append((marker.coordinator_epoch, marker.transaction_version))
        if self.loses_markers:
            lost: Pending[Any] = Pending()
            lost.fail(Network("the connection broke"))
            return lost
        return WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.marker_codes.get(index, self.marker_code),
                                )
                                for index in indexes
                            ],
                        )
                        for name, indexes in asked.items()
                    ],
                )
            ]
        )

    @property
    def coordinator(self) -> TransactionCoordinator:
        return self.cluster.broker().core.transaction_coordinator

    def set_epoch(self, epoch: int, transactional_id: str = "t") -> None:
        """Let the id have that epoch, as after many transactions."""
        for shard in self.coordinator.runtime.loaded():
            present = shard.transactions.get(transactional_id)
            if present is not None:
                shard.transactions[transactional_id] = present.replace(producer_epoch=epoch)

    def set_level(self, level: int) -> None:
        """Lower the cluster's feature transaction.version."""
        update = features.TRANSACTION, level, features.SAFE_DOWNGRADE
        self.cluster.broker().core.controller.update_features([update])

    def begin(self, request: Any, version: int) -> Any:
        """Send a request; return the answer, or a pending that may not be done."""
        api_key = declaration(type(request)).api
        assert api_key is not None
        return self.cluster.broker().core.handle(RequestContext(api_key, version), request)

    def ask(self, request: Any, version: int) -> Any:
        """Return the broker's answer."""
        answer = self.begin(request, version)
        if isinstance(answer, Pending):
            assert self.runtime.scheduler.wait(answer, WAIT_MS)
            return answer.result()
        return answer

    def let_pass(self, delay_ms: int) -> None:
        """Advance the clock and run due tasks."""
        self.runtime.scheduler.wait(Pending(), delay_ms)

    def initialize(
        self,
        transactional_id: str = "t",
        producer_id: int = -1,
        epoch: int = -1,
        *,
        timeout_ms: int = 60_000,
        version: int = 5,
    ) -> InitProducerIdResponse:
        """InitProducerId."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        response: InitProducerIdResponse = self.ask(request, version)
        return response

    def producer(self, transactional_id: str = "t", **how: Any) -> tuple[int, int]:
        """Return the producer id and epoch of a successful InitProducerId."""
        answer = self.initialize(transactional_id, **how)
        assert answer.error_code == ErrorCode.NONE, answer
        return answer.producer_id, answer.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        *partitions: int,
        transactional_id: str = "t",
        topic: str = TOPIC,
        version: int = 3,
    ) -> list[int]:
        """Send a client's AddPartitionsToTxn; return the error codes."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        (found,) = self.ask(request, version).results_by_topic_v3_and_below
        return [each.partition_error_code for each in found.results_by_partition]

    def register(
        self,
        producer: tuple[int, int],
        *partitions: int,
        transactional_id: str = "t",
        is_verified_only: bool = False,
    ) -> list[int]:
        """Send a broker's AddPartitionsToTxn; return the error codes."""
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    verify_only=is_verified_only,
                    topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))],
                )
            ]
        )
        (transaction,) = self.ask(request, 5).results_by_transaction
        (found,) = transaction.topic_results
        return [each.partition_error_code for each in found.results_by_partition]

    def end(
        self,
        producer: tuple[int, int],
        *,
        is_committed: bool = True,
        transactional_id: str = "t",
        version: int = 5,
    ) -> tuple[int, int, int]:
        """Send EndTxn; return (error code, producer id, epoch)."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=is_committed,
        )
        answer: EndTxnResponse = self.ask(request, version)
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def written(self, transactional_id: str = "t", *, first: int = 0) -> list[Written]:
        """Return the id's records from the `first` on."""
        topic = self.cluster.broker().core.controller.image.topics_by_name[TRANSACTIONS_TOPIC]
        index = partition_of(transactional_id, len(topic.partitions))
        partition = self.cluster.broker().core.replica_manager.partition(TRANSACTIONS_TOPIC, index)
        log = partition.log
        read = log.reader.read(0, max_bytes=1 << 24, end_offset=log.log_end_offset)
        found = []
        records = RecordFormat(TRANSACTION_RECORD_TYPES)
        for batch in iter_batches(read.records):
            for _, _, key, value, _ in tuples(batch):
                record = records.decode(key, value)
                assert record is not None
                if record.key.transactional_id == transactional_id:
                    found.append(_written(record.value))
        return found[first:]


def _written(value: Any) -> Written:
    if value is None:
        return Written("tombstone", -1, -1, -1, -1, None, 0)
    partitions = value.transaction_partitions
    return Written(
        states.NAMES[value.transaction_status],
        value.producer_id,
        value.previous_producer_id,
        value.next_producer_id,
        value.producer_epoch,
        None
        if partitions is None
        else [index for topic in partitions for index in topic.partition_ids],
        value.client_transaction_version,
    )
