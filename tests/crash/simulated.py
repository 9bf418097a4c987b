"""Shared by the programs on the simulated disk: a small varied directory, and its visible state.

The oracle parses the records, not the project.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from embedlog.cluster.cluster import Cluster
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.testing import SimFiles, sim_runtime
from tests.crash.oracle import OracleRecord, parse_segment
from wire.records import build_batch

if TYPE_CHECKING:
    from embedlog.storage.log.log import Log

DATA = "data"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
GROUP = "g"
OWN_PRODUCERS = 1 << 40
"""Producer ids from here on belong to `append_transaction`."""
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.segment.delete.delay.ms": "0",
}


def silence() -> None:
    """Log nothing: thousands of defects are intended."""
    logging.getLogger("embedlog").setLevel(logging.CRITICAL + 1)


def open_cluster(disk: SimFiles, level: str, *, seed: int = 0) -> Cluster:
    """Open the cluster of a simulated disk, with the clock at the disk's time."""
    runtime = sim_runtime(seed, files=disk)
    return Cluster(DATA, SETTINGS, durability=level, runtime=runtime, cluster_id=CLUSTER_ID)


def log_of(cluster: Cluster, topic: str, partition: int = 0) -> Log:
    """Return the log of an existing partition."""
    return cluster.broker().core.replica_manager.partition(topic, partition).log


class Shown(NamedTuple):
    """The records that readers of a partition get; `committed` for readers with read_committed."""

    start: int
    end: int
    records: tuple[OracleRecord, ...]
    committed: tuple[OracleRecord, ...]


def shown(log: Log) -> Shown:
    """Return all records between the log's start and its high watermark.

    Raises:
        AssertionError: the bytes are not whole valid batches.
        EmbedlogError: the log reports damage.
    """
    start, end, stable = (
        log.offsets.log_start_offset,
        log.offsets.high_watermark,
        log.offsets.last_stable_offset,
    )
    records = tuple(_read(log, start, end))
    aborted = [
        (transaction.producer_id, transaction.first_offset, transaction.last_offset)
        for transaction in log.transactions.aborted(start, stable)
    ]
    committed = tuple(
        record
        for record in records
        if record.offset < stable
        and not record.is_control
        and not any(
            record.producer[0] == producer_id and first <= record.offset <= last
            for producer_id, first, last in aborted
        )
    )
    return Shown(start, end, records, committed)


def _read(log: Log, start: int, end: int) -> Iterator[OracleRecord]:
    offset = start
    while offset < end:
        read = log.reader.read(offset, max_bytes=1 << 20, end_offset=end)
        path = f"{log.directory}/{read.segment_base_offset:020d}.log"
        segment = parse_segment(path, bytes(read.records))
        assert segment.stopped == "end", (path, offset, segment.stopped)
        for batch in segment.batches:
            for record in batch.records:
                if offset <= record.offset < end:
                    yield record
        assert read.next_offset > offset, (path, offset)
        offset = read.next_offset


def append_transaction(log: Log, value: bytes, now_ms: int, *, is_committed: bool) -> int:
    """Append one record of a transaction and its end marker; return the marker's offset."""
    known = max(
        (entry.current_txn_first_offset for entry in list(log.transactions.producers)), default=-1
    )
    assert known < 0, "one transaction at a time"
    producer_id = OWN_PRODUCERS + log.log_end_offset
    fields: dict[str, Any] = {
        "timestamps": now_ms,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "transactional": True,
    }
    batch = build_batch([value], base_sequence=0, **fields)
    epoch = max(0, log.epochs.latest)
    with log.lock:
        log.append_as_leader(batch, leader_epoch=epoch, now_ms=now_ms)
    marker = build_batch(
        [bytes(6)], keys=[bytes(2) + int(is_committed).to_bytes(2, "big")], control=True, **fields
    )
    with log.lock:
        offset = log.append_as_leader(
            marker, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR
        ).first_offset
    return settle(log, offset)


def settle(log: Log, offset: int) -> int:
    """Acknowledge everything up to `offset` by the rules of the log's level."""
    is_synced = log.config.durability == "fsync"
    if is_synced:
        log.durability.sync(offset + 1)
    with log.lock:
        log.offsets.commit(is_synced)
    return offset
