"""Entries of two files beside a segment: the transaction index and the producer snapshot."""

from __future__ import annotations

from wire.schema import array, int16, int32, int64, message, struct, uint32


@message(kind="data", versions="0")
class AbortedTxn:
    producer_id: int = int64()
    first_offset: int = int64()
    last_offset: int = int64()
    last_stable_offset: int = int64()


@struct
class ProducerEntry:
    producer_id: int = int64()
    epoch: int = int16()
    last_sequence: int = int32()
    last_offset: int = int64()
    offset_delta: int = int32()
    timestamp: int = int64()
    coordinator_epoch: int = int32()
    current_txn_first_offset: int = int64()


@message(kind="data", versions="1")
class ProducerSnapshot:
    crc: int = uint32()
    producer_entries: list[ProducerEntry] = array(ProducerEntry)
