"""Record batches as bytes: building, reading, checking and compressing them.

Batches of magic 2 are built and read; old messages of magic 0 and 1 are read, and made for old
clients.

    format.py       the layout of a batch, drawn       batch.py     RecordBatch, a view of bytes
    known.py        caches of batch shapes             legacy_conversion.py   to magic 0 and 1
    record.py       one record as a tuple              control.py   transaction markers
    compression.py  the codecs, framed as Kafka's      crc32c.py    the checksum
    retain.py       removes records from a batch       legacy.py    magic 0 and 1

    encode/         records to batches
        builder.py  columns of values to a batch       built.py     batches that need no check
        joins.py    the records section, for both

    decode/         batches to records
        loop.py     the plain loop that defines validity
        choose.py   picks the way to read a batch      columns.py   batch to numpy columns
        rows.py     columns that become tuples         scan.py      the checks of an append
      faster ways to read, each proven equal to the plain loop:
        uniform.py  batches of records of one size, compared whole
        runs.py     fields at an even distance, taken as columns
        layouts.py  runs with the layout of an earlier batch, compared whole
        chain.py    any lengths: a chain of table look-ups
        lockstep.py many small batches in columns, record after record
        fields.py   decodes the fields for the last two forms

Nothing here does I/O. The first call that needs numpy or a codec imports it.
"""

from __future__ import annotations

from wire.records.batch import RecordBatch, iter_batches, stamp
from wire.records.crc32c import crc32c
from wire.records.decode.choose import scan, tuples
from wire.records.decode.scan import ScanResult
from wire.records.encode.builder import build_batch
from wire.records.errors import (
    CorruptBatch,
    CorruptPayload,
    InvalidRecord,
    RecordsError,
    TooLarge,
    UnsupportedCodec,
)
from wire.records.format import (
    CODEC_NAMES,
    DECOMPRESSED_SIZE_MAX,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Codec,
    TimestampType,
)
from wire.records.record import Record

__all__ = [
    "CODEC_NAMES",
    "DECOMPRESSED_SIZE_MAX",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "Codec",
    "CorruptBatch",
    "CorruptPayload",
    "InvalidRecord",
    "Record",
    "RecordBatch",
    "RecordsError",
    "ScanResult",
    "TimestampType",
    "TooLarge",
    "UnsupportedCodec",
    "build_batch",
    "crc32c",
    "iter_batches",
    "scan",
    "stamp",
    "tuples",
]
