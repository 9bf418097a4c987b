"""The bytes of record batches: build, read, check, compress; magic 2, and reading magic 0 and 1.

    format.py       the layout, drawn once             batch.py     RecordBatch, a view; stamp
    known.py        caches of batch shapes             legacy_conversion.py   to magic 0 and 1
    record.py       one record as a tuple              control.py   transaction markers
    compression.py  the codecs, framed as Kafka's      crc32c.py    the checksum
    retain.py       a batch with fewer records         legacy.py    magic 0 and 1

    encode/         records to batches
        builder.py  values -> batch                    built.py     batches made in this process
        joins.py    the pieces of records, for both

    decode/         batches to records
        loop.py     the plain loop that defines validity
        choose.py   picks the form of reading          columns.py   batch -> numpy columns
        rows.py     records as fields, before tuples   scan.py      the checks of an append
      faster forms, each proven equal to the plain loop:
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
