"""Checking a client's batch before an append, and collecting facts that the broker needs."""

from __future__ import annotations

from wire.records.decode.loop import NO_HEADER_LIMIT, parse_in_parts, parse_records
from wire.records.varint import INT64_MAX, INT64_MIN, distinct, int64, timestamps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.decode.fields import FieldArrays
    from wire.records.decode.runs import Run


_PART_COUNT = 8_192


class ScanResult:
    """The facts of a valid batch. Timestamps are the producer's, even for LogAppendTime.

    max_timestamp         the greatest timestamp of a record, -1 for an empty batch
    min_timestamp         the least timestamp of a record, -1 for an empty batch
    first_null_key_index  index of the first record without a key, -1 if all have keys
    consecutive           whether the offset deltas are 0, 1, 2, ...
    """

    __slots__ = (
        "consecutive",
        "first_null_key_index",
        "max_timestamp",
        "min_timestamp",
    )

    def __init__(
        self,
        max_timestamp: int,
        min_timestamp: int,
        first_null_key_index: int,
        consecutive: bool,
    ) -> None:
        self.max_timestamp = max_timestamp
        self.min_timestamp = min_timestamp
        self.first_null_key_index = first_null_key_index
        self.consecutive = consecutive

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScanResult):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"ScanResult(max_timestamp={self.max_timestamp}, "
            f"min_timestamp={self.min_timestamp}, "
            f"first_null_key_index={self.first_null_key_index}, consecutive={self.consecutive})"
        )


def scan_deltas(deltas: bytes, base_timestamp: int, first_null_key_index: int) -> ScanResult:
    """Return the facts of a batch, from the `deltas` that `Shape.deltas` returns for it."""
    if not deltas:
        return ScanResult(base_timestamp, base_timestamp, first_null_key_index, True)
    found = [(raw >> 1) ^ -(raw & 1) for raw in distinct(deltas)]
    stamps = timestamps_of(base_timestamp, found)
    latest, earliest = max(stamps), min(stamps)
    return ScanResult(latest, earliest, first_null_key_index, True)


def scan_runs(runs: list[Run], base_timestamp: int) -> ScanResult:
    """Return the facts of records that consist of these runs."""
    latest = earliest = int64(base_timestamp + runs[0].delta)
    for run in runs:
        deltas = run.distinct_deltas()
        stamps = [base_timestamp + min(deltas), base_timestamp + max(deltas)]
        if stamps[0] < INT64_MIN or stamps[1] > INT64_MAX:
            stamps = timestamps_of(base_timestamp, deltas)  # these sums wrap around at 64 bits
        latest, earliest = max(latest, *stamps), min(earliest, *stamps)
    return ScanResult(
        latest,
        earliest,
        next((run.index for run in runs if run.key_size < 0), -1),
        True,
    )


def scan_fields(fields: FieldArrays, count: int, base_timestamp: int) -> ScanResult:
    """Return the facts of records with these fields."""
    import numpy as np

    stamps = fields.deltas + np.int64(base_timestamp)
    null_keys = fields.key_sizes < 0
    first_null = int(null_keys.argmax())
    return ScanResult(
        int(stamps.max()),
        int(stamps.min()),
        first_null if null_keys[first_null] else -1,
        bool(np.array_equal(fields.offset_deltas, np.arange(count))),
    )


def scan_plainly(
    data: bytes | memoryview,
    count: int,
    base_timestamp: int,
    header_count_max: int = NO_HEADER_LIMIT,
) -> ScanResult:
    """Return the facts, read by the plain loop.

    Raises:
        InvalidRecord: a record is malformed, or the number of records is not the declared one.
        TooManyHeaders: all records together have more than `header_count_max` headers.
    """
    if count > _PART_COUNT:
        return _scan_in_parts(data, count, base_timestamp, header_count_max)
    records = parse_records(data, count, header_count_max)
    if count == 1:
        ((delta, offset_delta, _, key_size, *_),) = records
        stamp = int64(base_timestamp + delta)
        return ScanResult(stamp, stamp, 0 if key_size < 0 else -1, offset_delta == 0)
    deltas, offset_deltas, _, key_sizes, *_ = zip(*records, strict=True)
    stamps = timestamps_of(base_timestamp, deltas)
    return ScanResult(
        max(stamps),
        min(stamps),
        next((index for index, size in enumerate(key_sizes) if size < 0), -1),
        offset_deltas == tuple(range(count)),
    )


def _scan_in_parts(
    data: bytes | memoryview, count: int, base_timestamp: int, header_count_max: int
) -> ScanResult:
    """Return the facts of a batch. Read it in parts: 100,000 records at once took 50 MB."""
    latest: list[int] = []
    earliest: list[int] = []
    first_null, first, consecutive = -1, 0, True
    for records in parse_in_parts(data, count, _PART_COUNT, header_count_max):
        deltas, offset_deltas, _, key_sizes, *_ = zip(*records, strict=True)
        stamps = timestamps_of(base_timestamp, deltas)
        latest.append(max(stamps))
        earliest.append(min(stamps))
        if first_null < 0:
            first_null = next((n for n, size in enumerate(key_sizes, first) if size < 0), -1)
        consecutive &= offset_deltas == tuple(range(first, first + len(records)))
        first += len(records)
    return ScanResult(max(latest), min(earliest), first_null, consecutive)
