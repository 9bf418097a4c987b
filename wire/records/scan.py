"""What a broker must know of a client's batch before it appends it."""

from __future__ import annotations

from wire.records.batch import DECOMPRESSED_SIZE_MAX, RecordBatch
from wire.records.plain import parse_records

TYPE_CHECKING = False


class ScanResult:
    """The facts of a valid batch; timestamps are base timestamp plus delta, whatever their type.

    max_timestamp         the greatest timestamp of a record, -1 for an empty batch
    max_timestamp_index   the first record that has it, -1 for an empty batch
    min_timestamp         the least timestamp of a record, -1 for an empty batch
    first_null_key_index  the first record without a key, -1 when all have one
    consecutive           whether the offset deltas are 0, 1, 2, ...
    """

    __slots__ = (
        "consecutive",
        "first_null_key_index",
        "max_timestamp",
        "max_timestamp_index",
        "min_timestamp",
    )

    def __init__(
        self,
        max_timestamp: int,
        max_timestamp_index: int,
        min_timestamp: int,
        first_null_key_index: int,
        consecutive: bool,
    ) -> None:
        self.max_timestamp = max_timestamp
        self.max_timestamp_index = max_timestamp_index
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
            f"max_timestamp_index={self.max_timestamp_index}, "
            f"min_timestamp={self.min_timestamp}, "
            f"first_null_key_index={self.first_null_key_index}, consecutive={self.consecutive})"
        )


def scan(batch: RecordBatch, limit: int = DECOMPRESSED_SIZE_MAX) -> ScanResult:
    """Check every record of `batch` and return what the checks of an append need.

    Raises:
        InvalidRecord: a record is malformed, or their number differs from the declared one.
        CorruptPayload, TooLarge, UnsupportedCodec: the records cannot be decompressed.
    """
    count = batch.record_count
    if count == 0:
        return ScanResult(-1, -1, -1, -1, True)
    data = bytes(batch.payload(limit))
    fields = parse_records(data, count)
    deltas = [field[0] for field in fields]
    key_sizes = [field[3] for field in fields]
    latest = max(deltas)
    return ScanResult(
        batch.base_timestamp + latest,
        deltas.index(latest),
        batch.base_timestamp + min(deltas),
        next((index for index, size in enumerate(key_sizes) if size < 0), -1),
        all(field[1] == index for index, field in enumerate(fields)),
    )
