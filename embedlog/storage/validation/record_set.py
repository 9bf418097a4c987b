"""The entries of a produced record set: the first one, and the bytes that may follow it.

An impossible length or magic is a CorruptMessage; a size beyond an int32, where Kafka overflows, is
an UnknownServerError.
"""

from __future__ import annotations

from embedlog import errors
from wire.records.format import ENTRY_HEAD, LENGTH_MIN, LOG_OVERHEAD, MAGIC_POSITION

_LENGTH_MAX = (1 << 31) - 1 - LOG_OVERHEAD


def first_entry(view: memoryview, magic_limits: tuple[int, int]) -> tuple[int, int, int]:
    """Return offset, size and magic of the first entry, which must be whole and allowed.

    Raises:
        InvalidRecord: no whole entry, or a magic outside `magic_limits`.
    """
    entry = _entry(view, 0)
    if entry is None:
        raise errors.InvalidRecord(
            "Produce requests must have at least one record batch per partition"
        )
    magic_min, magic_max = magic_limits
    if not magic_min <= entry[2] <= magic_max:
        raise errors.InvalidRecord(
            "Produce requests of this version are only allowed to contain record batches with "
            f"magic version {magic_min} to {magic_max}, not {entry[2]}"
        )
    return entry


def check_rest(view: memoryview, position: int) -> None:
    """Check the bytes after the one batch: the caller trims them if they are no whole entry.

    Raises:
        InvalidRecord: they begin with a second whole entry.
    """
    if _entry(view, position) is not None:
        raise errors.InvalidRecord(
            "Produce requests are only allowed to contain exactly one record batch per partition"
        )


def check_size(size: int, size_max: int, topic_partition: object) -> None:
    """Raise MessageTooLarge unless a batch of `size` bytes, as sent, fits max.message.bytes."""
    if size > size_max:
        raise errors.MessageTooLarge(
            f"The record batch size in the append to {topic_partition} is {size} bytes which "
            f"exceeds the maximum configured value of {size_max}."
        )


def _entry(view: memoryview, position: int) -> tuple[int, int, int] | None:
    """Return offset, size and magic of the entry at `position`, or None if it is incomplete."""
    remaining = len(view) - position
    if remaining < LOG_OVERHEAD:
        return None
    if remaining <= MAGIC_POSITION:
        length = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if length < LENGTH_MIN:
            raise _too_short(length)
        return None
    offset, length, _, magic = ENTRY_HEAD.unpack_from(view, position)
    if length < LENGTH_MIN:
        raise _too_short(length)
    if not 0 <= magic <= 2:
        raise errors.CorruptMessage(f"Invalid magic found in record: {magic}")
    if length > _LENGTH_MAX:
        raise errors.UnknownServerError(f"Record size {length} exceeds the largest possible batch")
    if length + LOG_OVERHEAD > remaining:
        return None
    return offset, length + LOG_OVERHEAD, magic


def _too_short(length: int) -> errors.KafkaError:
    return errors.CorruptMessage(
        f"Record size {length} is less than the minimum record overhead ({LENGTH_MIN})"
    )
