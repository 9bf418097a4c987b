"""Short forms of the requests of a transaction, and steps that drive a transaction."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import BASE_TIMESTAMP
from tests.golden.requests import Topic
from tests.golden.run import Run
from wire.records import build_batch
from wire.schemas.add_offsets_to_txn import AddOffsetsToTxnRequest
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.end_txn import EndTxnRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

RETRIED = (14, 15, 16, 51)
"""Error codes of a busy coordinator: loading, not available, elsewhere, concurrent."""
DECIDED = ("PrepareCommit", "PrepareAbort")

Producer = tuple[int, int]
Partition = tuple[Topic | str, int]


def init(
    transactional_id: str | None,
    producer: Producer = (-1, -1),
    *,
    timeout_ms: int = 60_000,
) -> InitProducerIdRequest:
    """InitProducerId."""
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer[0],
        producer_epoch=producer[1],
    )


def _topics(partitions: tuple[Partition, ...]) -> list[AddPartitionsToTxnTopic]:
    by_name: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_name.setdefault(topic if isinstance(topic, str) else topic[0], []).append(index)
    return [AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in by_name.items()]


def add(transactional_id: str, producer: Producer, *partitions: Partition) -> Any:
    """AddPartitionsToTxn as clients send it, before version 4."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=_topics(partitions),
    )


def transaction(
    transactional_id: str, producer: Producer, *partitions: Partition, verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    """One of the transactions of `register`."""
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=_topics(partitions),
    )


def register(*transactions: AddPartitionsToTxnTransaction) -> Any:
    """AddPartitionsToTxn as brokers send it, from version 4 on."""
    return AddPartitionsToTxnRequest(transactions=list(transactions))


def add_offsets(transactional_id: str, producer: Producer, group: str) -> AddOffsetsToTxnRequest:
    """AddOffsetsToTxn."""
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group,
    )


def end(transactional_id: str, producer: Producer, *, commit: bool = True) -> EndTxnRequest:
    """EndTxn."""
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=commit,
    )


def txn_commit(
    transactional_id: str,
    producer: Producer,
    group: str,
    topic: Topic,
    *offsets: tuple[int, int] | tuple[int, int, str | None],
    version: int = 5,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
) -> TxnOffsetCommitRequest:
    """TxnOffsetCommit of (partition, offset[, metadata])."""
    rows = [
        TxnOffsetCommitRequestPartition(
            partition_index=row[0],
            committed_offset=row[1],
            committed_metadata=row[2] if len(row) > 2 else "",
        )
        for row in offsets
    ]
    where: dict[str, Any] = {"topic_id": topic[1]} if version >= 6 else {"name": topic[0]}
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[TxnOffsetCommitRequestTopic(partitions=rows, **where)],
    )


def markers(
    producer: Producer,
    *partitions: Partition,
    commit: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WriteTxnMarkersRequest:
    """WriteTxnMarkers of one producer."""
    topics = [
        WritableTxnMarkerTopic(name=each.name, partition_indexes=each.partitions)
        for each in _topics(partitions)
    ]
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=commit,
        topics=topics,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def batch(
    producer: Producer, *values: bytes, sequence: int = 0, transactional: bool = True
) -> bytes:
    """Build a batch of a producer's transaction."""
    return build_batch(
        list(values),
        timestamps=BASE_TIMESTAMP,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=transactional,
    )


def warm_up_transactions(run: Run) -> None:
    """Create the coordinators' topics, and wait for a coordinator that answers."""
    for key_type in (0, 1):
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["warm"])
        while run.setup(request, 4).coordinators[0].error_code:
            run.let_pass(100)
    # The id 0 also stands for a missing producer.
    owned(run, None)
    owned(run, run.group("warm"))


def owned(run: Run, transactional_id: str | None, *, timeout_ms: int = 60_000) -> Producer:
    """Return the producer id and epoch of an initialised transactional id, without a step."""
    while True:
        answer = run.setup(init(transactional_id, timeout_ms=timeout_ms), 5)
        if answer.error_code not in RETRIED:
            break
        run.let_pass(50)
    assert answer.error_code == 0, answer
    return answer.producer_id, answer.producer_epoch


def settle(run: Run, transactional_id: str) -> None:
    """Return once every partition of the id's transaction has its marker."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    run.until(
        lambda answer: answer.transaction_states[0].transaction_state not in DECIDED,
        request,
        0,
        keep=False,
    )


def began(run: Run, transactional_id: str, *partitions: Partition, version: int = 3) -> Producer:
    """Begin a transaction of the id, without a step; return the producer."""
    producer = owned(run, transactional_id)
    if version >= 4:
        run.setup(register(transaction(transactional_id, producer, *partitions)), version)
    else:
        run.setup(add(transactional_id, producer, *partitions), version)
    return producer


def ended(
    run: Run, transactional_id: str, producer: Producer, *, commit: bool = True, version: int = 5
) -> Producer:
    """End it, without a step, and wait for the markers; return the next producer."""
    answer = run.setup(end(transactional_id, producer, commit=commit), version)
    assert answer.error_code == 0, answer
    settle(run, transactional_id)
    return (answer.producer_id, answer.producer_epoch) if version >= 5 else producer
