"""Errors in the bytes of a record batch.

Every error of this package is a `RecordsError`; the class decides the broker's answer:

    CorruptBatch       the frame is broken: size, magic or checksum   CORRUPT_MESSAGE
    InvalidRecord      the frame is whole, a record inside it is not  INVALID_RECORD
    CorruptPayload     the compressed records do not decompress
    UnsupportedCodec   the codec is unknown, or forbidden here        UNSUPPORTED_COMPRESSION_TYPE
    TooLarge           the records decompress beyond the caller's limit
    TooManyHeaders     the records have more headers than the caller allows  MESSAGE_TOO_LARGE
"""

from __future__ import annotations


class RecordsError(ValueError):
    """Base of all errors about the bytes of records."""


class CorruptBatch(RecordsError):
    """The size, magic, checksum or structure of a whole batch is wrong."""


class InvalidRecord(RecordsError):
    """A record is malformed: number `index` of its batch, or -1 if no single record is at fault."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"record {index}: {reason}")
        self.index = index
        self.reason = reason


class UnsupportedCodec(RecordsError):
    """The codec is unknown, not allowed for this magic, or its library is not installed."""


class CorruptPayload(RecordsError):
    """The compressed bytes of a batch cannot be decompressed."""


class TooLarge(RecordsError):
    """Decompression would exceed the limit."""


class TooManyHeaders(RecordsError):
    """The headers of all records of a batch exceed the limit."""
