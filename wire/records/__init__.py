"""The bytes of record batches: build, read, check, compress; magic 2, and reading magic 0 and 1.

    batch.py        the layout, drawn once; RecordBatch, a view; iter_batches; stamp
    record.py       one record as a tuple              plain.py     the loop that defines validity
    builder.py      values -> batch                    encoding.py  its joins and tables
    reader.py       batch -> rows -> tuples            columns.py   batch -> numpy columns
    scan.py         what a broker checks and learns    control.py   transaction markers
    compression.py  the codecs, framed as Kafka's      crc32c.py    the checksum
    retain.py       a batch with fewer records         legacy.py    magic 0 and 1
    rows.py         fields of records, yet to be tuples

How records are read fast, each form proving that it equals the plain loop:

    template.py     values of one length, compared whole
    layout.py       runs of records laid out alike, compared by columns
    varying.py      any lengths: a chain of table look-ups, then numpy

Nothing here does I/O, and numpy and the codecs are imported by the first call that needs them.
"""

from __future__ import annotations

from wire.records.batch import (
    CODEC_NAMES,
    DECOMPRESSED_SIZE_MAX,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Codec,
    RecordBatch,
    TimestampType,
    iter_batches,
    stamp,
)
from wire.records.builder import BatchBuilder, build_batch, size_upper_bound
from wire.records.crc32c import crc32c
from wire.records.errors import (
    CorruptBatch,
    CorruptPayload,
    InvalidRecord,
    RecordsError,
    TooLarge,
    UnsupportedCodec,
)
from wire.records.reader import tuples
from wire.records.record import Record
from wire.records.scan import ScanResult, scan

__all__ = [
    "CODEC_NAMES",
    "DECOMPRESSED_SIZE_MAX",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "BatchBuilder",
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
    "size_upper_bound",
    "stamp",
    "tuples",
]
