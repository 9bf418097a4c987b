"""The bytes of record batches: build, read, check, compress; magic 2, and reading magic 0 and 1.

    format.py       the layout, drawn once             batch.py     RecordBatch, a view; stamp
    known.py        what is remembered of shapes       legacy_conversion.py   to magic 0 and 1
    record.py       one record as a tuple              control.py   transaction markers
    compression.py  the codecs, framed as Kafka's      crc32c.py    the checksum
    retain.py       a batch with fewer records         legacy.py    magic 0 and 1

    encode/         records to batches
        builder.py  values -> batch                    built.py     batches made in this process
        joins.py    the pieces and tables of both

    decode/         batches to records
        loop.py     the plain loop that defines validity
        rows.py     fields of records, yet to be tuples
        choose.py   batch -> rows -> tuples            columns.py   batch -> numpy columns
        scan.py     what a broker checks and learns
        the forms that measurements pay for, each an equal parse of the loop:
        uniform.py  batches of records of one size, compared whole
        runs.py     fields an even distance apart, taken as columns
        layouts.py  runs as they were in the batch before, compared whole
        chain.py    any lengths: a chain of table look-ups
        lockstep.py many small batches in columns, record after record
        fields.py   the fields of records whose ends these two have found

Nothing here does I/O, and numpy and the codecs are imported by the first call that needs them.
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
