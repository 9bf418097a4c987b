"""The requests of a transactional producer: their messages, and the effects of their answers.

priority  request                            to
0         FindCoordinator, ApiVersions       any node; the coordinator that was found
1         InitProducerId                     the coordinator of the transactions
2         AddPartitionsToTxn                 the same, with transaction.version below 2
2         AddOffsetsToTxn                    the same, as above
2         TxnOffsetCommit                    the group's coordinator
3         EndTxn                             the coordinator of the transactions
4         InitProducerId, for a new epoch    the same
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.backoff import Backoff
from embedlog.client.producer.transactions.errors import FORGOTTEN, Verdict, verdict
from embedlog.client.producer.transactions.prepared import PreparedTransaction
from embedlog.client.producer.transactions.status import OpenTransaction, TransactionState
from embedlog.errors import KafkaError, error_for
from embedlog.transport import ANY_NODE
from embedlog.version import __version__
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.schemas.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.end_txn import EndTxnRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.producer.transactions.coordinators import Coordinators
    from embedlog.client.producer.transactions.sequences import Sequences
    from embedlog.client.producer.transactions.status import TransactionStatus
    from embedlog.client.settings import Settings
    from embedlog.common import TopicPartition
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport


_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_SEVERAL_KEYS_SINCE = 4
_NEWEST = 32_767
_FIRST_PAUSE_MS = 20
"""Pause before the first AddPartitions is retried: the last transaction's markers take this
long."""


class CallResult:
    """The outcome of a call about transactions. The caller waits for it, and may call again after a
    time-out; the sender sets it."""

    __slots__ = ("call", "error", "is_done", "is_told")

    def __init__(self, call: str) -> None:
        self.call = call
        self.is_done = False
        self.error: Exception | None = None
        self.is_told = False
        """True if the caller has seen the outcome; until then, the same call waits for it again."""

    def succeed(self) -> None:
        self.is_done = True

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.error = error
            self.is_done = True


class TransactionContext:
    """The parts of a transactional producer that its requests use, and the requests that wait."""

    def __init__(  # noqa: PLR0917  the parts, each of its own kind
        self,
        transport: Transport,
        settings: Settings,
        status: TransactionStatus,
        coordinators: Coordinators,
        sequences: Sequences,
        has_records: Callable[[], bool],
    ) -> None:
        """`has_records` returns whether any record has no outcome."""
        self.transport = transport
        self.status = status
        self.coordinators = coordinators
        self.sequences = sequences
        self.has_records = has_records
        self.two_phases: bool = settings["transaction.two.phase.commit.enable"]
        self.timeout_ms: int = settings["transaction.timeout.ms"]
        self.backoff = Backoff.of_retries(settings, transport.runtime.random)
        self.waiting: list[TransactionRequest] = []
        self.last_refusal: KafkaError | None = None

    def add(self, request: TransactionRequest) -> None:
        self.waiting.append(request)
        self.waiting.sort(key=lambda each: each.priority)

    def version(self, kind: type[Any], node_id: int) -> int:
        """Return the newest version of a request for this transaction that the node takes."""
        return self.coordinators.version(kind, node_id, is_v2=self.status.open.is_v2)

    def set_id(self, producer_id: int, producer_epoch: int) -> None:
        """Go on with a new id or epoch, under which the partitions count from 0."""
        self.sequences.producer_id, self.sequences.producer_epoch = producer_id, producer_epoch
        self.status.open.needs_epoch = False


class TransactionRequest:
    """One request, until it has succeeded or is given up."""

    api_key: int
    priority = 2
    needs_coordinator = True
    group: str | None = None
    """The group whose coordinator gets the request; None for the coordinator of the
    transactions."""

    def __init__(self, result: CallResult | None = None) -> None:
        self.result = result
        self.failure_count = 0
        self.not_before_ms = 0

    def message(self, context: TransactionContext) -> Any:
        raise AssertionError(self)

    def send(self, context: TransactionContext) -> Pending[Any]:
        """Send the request. Requires: its coordinator is known, if it needs one."""
        node_id = context.coordinators.node(self.group)
        assert node_id is not None, self
        message = self.message(context)
        version = context.version(type(message), node_id)
        return context.transport.send(node_id, message, version=version)

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        """Take the answer; return its error, or None if the request has succeeded."""
        raise AssertionError(self)

    def verdict(self, error: KafkaError) -> str:
        return verdict(self.api_key, error)

    def pause_ms(self, error: KafkaError, context: TransactionContext) -> int:
        return context.backoff.delay_ms(self.failure_count)

    def succeeded(self) -> None:
        if self.result is not None:
            self.result.succeed()


class FindCoordinator(TransactionRequest):
    """Asks for the coordinator of a group, or of the transactions of this producer."""

    api_key = ApiKey.FIND_COORDINATOR
    priority = 0
    needs_coordinator = False

    def __init__(self, group: str | None) -> None:
        super().__init__()
        self._wanted = group
        self._is_old = False

    def send(self, context: TransactionContext) -> Pending[Any]:
        key = context.status.transactional_id if self._wanted is None else self._wanted
        kind = _TRANSACTION_KEY if self._wanted is None else _GROUP_KEY
        served = context.transport.versions(ANY_NODE) or {}
        newest = served.get(self.api_key, (0, _NEWEST))[1]
        if self._is_old or newest < _SEVERAL_KEYS_SINCE:
            request = FindCoordinatorRequest(key=key, key_type=kind)
        else:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        return context.transport.send(ANY_NODE, request)

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code:
            return error_for(found.error_code, found.error_message)
        context.coordinators.found(self._wanted, response)
        return None

    def verdict(self, error: KafkaError) -> str:
        if error.code == ErrorCode.UNSUPPORTED_VERSION and not self._is_old:
            self._is_old = True  # this answer is the first sign that the broker is old
            return Verdict.RETRY
        return super().verdict(error)


class AskVersions(TransactionRequest):
    """Asks the coordinator of the transactions for its versions and for the cluster's features."""

    api_key = ApiKey.API_VERSIONS
    priority = 0

    def send(self, context: TransactionContext) -> Pending[Any]:
        node_id = context.coordinators.node(None)
        assert node_id is not None, self
        request = ApiVersionsRequest(
            client_software_name="embedlog", client_software_version=__version__
        )
        return context.transport.send(node_id, request)

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        if response.error_code:
            return error_for(response.error_code)
        context.coordinators.take_versions(response)
        return None


class InitProducerId(TransactionRequest):
    """Asks for an id and an epoch; this fences earlier producers and ends their transactions."""

    api_key = ApiKey.INIT_PRODUCER_ID
    priority = 1

    def __init__(
        self, result: CallResult | None, *, keeps_prepared: bool = False, is_new_epoch: bool = False
    ) -> None:
        super().__init__(result)
        self._keeps_prepared = keeps_prepared
        if is_new_epoch:
            self.priority = 4

    def send(self, context: TransactionContext) -> Pending[Any]:
        if not (self._keeps_prepared or context.two_phases):
            return super().send(context)
        node_id = context.coordinators.node(None)
        assert node_id is not None, self
        return context.transport.send(node_id, self.message(context))

    def message(self, context: TransactionContext) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=context.status.transactional_id,
            transaction_timeout_ms=context.timeout_ms,
            producer_id=context.sequences.producer_id,
            producer_epoch=context.sequences.producer_epoch,
            enable2_pc=context.two_phases,
            keep_prepared_txn=self._keeps_prepared,
        )

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        if response.error_code:
            return error_for(response.error_code)
        context.set_id(response.producer_id, response.producer_epoch)
        status = context.status
        status.open = OpenTransaction(is_v2=context.coordinators.offers_v2)
        if response.ongoing_txn_producer_id >= 0:
            status.open.is_started = True
            status.open.prepared = PreparedTransaction(
                response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
            )
            status.transition_to(TransactionState.PREPARED)
        else:
            status.transition_to(TransactionState.READY)
        return None


class AddPartitions(TransactionRequest):
    """Adds partitions to the transaction before the first batch is sent to them."""

    api_key = ApiKey.ADD_PARTITIONS_TO_TXN

    def __init__(self, partitions: set[tuple[str, int]]) -> None:
        super().__init__()
        self.partitions = partitions

    def message(self, context: TransactionContext) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.partitions):
            topics.setdefault(topic, []).append(index)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=context.status.transactional_id,
            v3_and_below_producer_id=context.sequences.producer_id,
            v3_and_below_producer_epoch=context.sequences.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in topics.items()
            ],
        )

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        refused = {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for each in topic.results_by_partition
            if each.partition_error_code
        }
        if not refused:
            context.status.open.partitions |= self.partitions
            context.status.open.is_started = True
            return None
        # Skip partitions that were not tried: the reason is the error of a refused partition.
        telling = [
            (key, code)
            for key, code in refused.items()
            if code != ErrorCode.OPERATION_NOT_ATTEMPTED
        ]
        (topic, index), code = (telling or list(refused.items()))[0]
        return error_for(code, f"{topic}-{index} is not part of the transaction")

    def pause_ms(self, error: KafkaError, context: TransactionContext) -> int:
        is_first = not context.status.open.partitions
        if error.code == ErrorCode.CONCURRENT_TRANSACTIONS and is_first:
            return _FIRST_PAUSE_MS
        return super().pause_ms(error, context)


class AddOffsets(TransactionRequest):
    """Adds the offsets of a group to the transaction; `CommitOffsets` then stores them."""

    api_key = ApiKey.ADD_OFFSETS_TO_TXN

    def __init__(self, following: CommitOffsets) -> None:
        super().__init__(following.result)
        self._following = following

    def message(self, context: TransactionContext) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=context.status.transactional_id,
            producer_id=context.sequences.producer_id,
            producer_epoch=context.sequences.producer_epoch,
            group_id=self._following.group,
        )

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        if response.error_code:
            return error_for(response.error_code)
        context.status.open.is_started = True
        self.result = None
        context.add(self._following)
        return None


class CommitOffsets(TransactionRequest):
    """Stores offsets of a group, which count when the transaction is committed."""

    api_key = ApiKey.TXN_OFFSET_COMMIT

    def __init__(
        self,
        result: CallResult,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        super().__init__(result)
        self.group: str = group.group_id
        self._left = dict(offsets)
        self._metadata = group
        self._is_final = False
        """True if the broker's answer about a missing partition is final."""

    def message(self, context: TransactionContext) -> TxnOffsetCommitRequest:
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (name, index), (offset, text, leader_epoch) in self._left.items():
            topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name))
            topic.partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=text,
                )
            )
        group_id, generation_id, member_id, instance_id = self._metadata
        return TxnOffsetCommitRequest(
            transactional_id=context.status.transactional_id,
            group_id=group_id,
            producer_id=context.sequences.producer_id,
            producer_epoch=context.sequences.producer_epoch,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            topics=[*topics.values()],
        )

    def verdict(self, error: KafkaError) -> str:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._is_final:
            return Verdict.ABORT
        return super().verdict(error)

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        self._is_final = context.transport.is_authority
        refused: KafkaError | None = None
        for topic in response.topics:
            for each in topic.partitions:
                if not each.error_code:
                    self._left = {
                        key: offset
                        for key, offset in self._left.items()
                        if key != (topic.name, each.partition_index)
                    }
                    continue
                error = error_for(
                    each.error_code, f"offset of {topic.name}-{each.partition_index} for the group "
                    f"{self.group!r}, as {self._metadata!r}",
                )  # fmt: skip
                if refused is None or (refused.retriable and not error.retriable):
                    refused = error
        if refused is None and self._left:
            return errors.UnknownServerError(f"the response leaves {list(self._left)} out")
        return refused


class EndTxn(TransactionRequest):
    """Commits or aborts, once every batch has an outcome."""

    api_key = ApiKey.END_TXN
    priority = 3

    def __init__(self, result: CallResult, *, commits: bool) -> None:
        super().__init__(result)
        self.commits = commits

    def verdict(self, error: KafkaError) -> str:
        found = super().verdict(error)
        # If the abort itself is refused, the producer can only be closed.
        return Verdict.CLOSE if found == Verdict.ABORT and not self.commits else found

    def message(self, context: TransactionContext) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=context.status.transactional_id,
            producer_id=context.sequences.producer_id,
            producer_epoch=context.sequences.producer_epoch,
            committed=self.commits,
        )

    def take(self, context: TransactionContext, response: Any) -> KafkaError | None:
        code = response.error_code
        if code in FORGOTTEN and not self.commits:
            # The transaction is gone, so there is nothing to abort.
            context.sequences.producer_id = context.sequences.producer_epoch = -1
        elif code == ErrorCode.INVALID_TXN_STATE and self.commits:
            return errors.InvalidTxnState(
                f"the coordinator has no such transaction to commit: did it take longer than "
                f"transaction.timeout.ms={context.timeout_ms}?"
            )
        elif code:
            return error_for(code)
        elif response.producer_id >= 0:
            context.set_id(response.producer_id, response.producer_epoch)
        self._ended(context)
        return None

    def skip(self, context: TransactionContext) -> None:
        self._ended(context)
        self.succeeded()

    def _ended(self, context: TransactionContext) -> None:
        """Enter the state after the end. Ctrl-C may come at any step: a second call goes on."""
        result = self.result
        assert result is not None, self
        opened, status = context.status.open, context.status
        # The first transaction after an upgrade to version 2 needs an epoch that was not in use.
        is_upgraded = context.coordinators.offers_v2 and not opened.is_v2
        if (
            (opened.needs_epoch or is_upgraded or context.sequences.producer_id < 0)
            or status.state == TransactionState.INITIALIZING
        ):  # fmt: skip
            status.ended(TransactionState.INITIALIZING)
            if not any(isinstance(each, InitProducerId) for each in context.waiting):
                context.add(InitProducerId(result, is_new_epoch=True))
        else:
            status.ended(TransactionState.READY)
            result.succeed()
        self.result = None
