"""The plain loop over the records of a batch, which defines validity.

Every faster form in this package accepts only records that it can prove to read in the same way,
and leaves all others to this loop. So only this loop finds errors.
"""

from __future__ import annotations

from wire.records.errors import InvalidRecord, TooManyHeaders
from wire.records.varint import (
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    Malformed,
    read_unsigned,
    read_varint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire.records.record import Header, Headers

    # timestamp delta, offset delta, key position and size, value position and size (sizes are
    # negative for null), number of headers, position of the first one
    Fields = tuple[int, int, int, int, int, int, int, int]

# One byte each for length, attributes, both deltas, key length, value length and header count.
RECORD_SIZE_MIN = 7

NO_HEADER_LIMIT = 1 << 31
"""A limit that no batch can reach, because of its size."""


def parse_records(
    data: bytes | memoryview, count: int, header_count_max: int = NO_HEADER_LIMIT
) -> list[Fields]:
    """Return the fields of the `count` records that fill `data` exactly.

    Like Kafka, this accepts record attributes, any order of offset deltas, lengths below -1 (which
    mean null), and header keys that are not UTF-8.

    Raises:
        InvalidRecord: a record is malformed, or `data` does not hold exactly `count` records.
        TooManyHeaders: all records together have more than `header_count_max` headers.
    """
    # `parse_in_parts` is not used here: its generator costs 0.5 us, a third of the time of a batch
    # of one record.
    if count < 0:
        raise _negative(count)
    records: list[Fields] = []
    try:
        end, _ = _parse(data, 0, count, records, header_count_max)
    except (IndexError, Malformed) as error:
        raise _malformed(len(records), error) from None
    if end != len(data):
        raise _not_filled(count, len(data) - end)
    return records


def parse_in_parts(
    data: bytes | memoryview,
    count: int,
    part_count: int,
    header_count_max: int = NO_HEADER_LIMIT,
) -> Iterator[list[Fields]]:
    """Yield the result of `parse_records` in lists of `part_count` records, at least one list.

    This saves memory for callers that do not keep the fields, which take 250 bytes a record. Raises
    as `parse_records` does, but not before the iteration reaches the bad record.
    """
    if count < 0:
        raise _negative(count)
    end = first = 0
    while True:
        records: list[Fields] = []
        try:
            end, header_count_max = _parse(
                data, end, min(part_count, count - first), records, header_count_max
            )
        except (IndexError, Malformed) as error:
            raise _malformed(first + len(records), error) from None
        first += len(records)
        if first == count and end != len(data):
            raise _not_filled(count, len(data) - end)
        yield records
        if first == count:
            return


def _negative(count: int) -> InvalidRecord:
    return InvalidRecord(-1, f"a batch of {count} records")


def _malformed(index: int, error: IndexError | Malformed) -> InvalidRecord:
    return InvalidRecord(
        index, str(error) if isinstance(error, Malformed) else "the records end early"
    )


def _not_filled(count: int, size: int) -> InvalidRecord:
    return InvalidRecord(-1, f"{size} bytes after the last of {count} records")


def _parse(
    data: bytes | memoryview, end: int, count: int, records: list[Fields], header_count_max: int
) -> tuple[int, int]:
    """Append the fields of `count` records from `end` on; return new `end`, `header_count_max`."""
    # Short numbers, the usual ones, are read without a call, which would cost 0.2 us.
    for _ in range(count):
        number = data[end]
        position = end + 1
        if number > 0x7F:
            more = data[position]
            position += 1
            number = number & 0x7F | more << 7
            if more > 0x7F:
                number, position = read_unsigned(data, end, MAX_VARINT_SIZE)
        end = position + (number >> 1)
        if number & 1 or end > len(data):
            raise Malformed(f"{number >> 1} bytes long, {len(data) - position} remain")

        position += 2  # skips the attributes
        delta = data[position - 1]
        if delta > 0x7F:
            delta, position = read_unsigned(data, position - 1, MAX_VARLONG_SIZE)
        position += 1
        offset = data[position - 1]
        if offset > 0x7F:
            offset, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)

        position += 1
        number = data[position - 1]
        if number > 0x7F:
            number, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)
        key_at = position
        key_size = (number >> 1) ^ -(number & 1)
        if key_size > 0:
            position += key_size

        number = data[position]
        position += 1
        if number > 0x7F:
            more = data[position]
            position += 1
            number = number & 0x7F | more << 7
            if more > 0x7F:
                number, position = read_unsigned(data, position - 2, MAX_VARINT_SIZE)
        value_at = position
        value_size = (number >> 1) ^ -(number & 1)
        if value_size > 0:
            position += value_size
        headers = data[position]
        position += 1
        headers_at = position
        if headers:
            headers, headers_at, position = _skip_headers(data, position - 1, header_count_max)
            header_count_max -= headers
        if position != end:
            raise Malformed(f"its fields end at {position}, its length says {end}")
        delta, offset = (delta >> 1) ^ -(delta & 1), (offset >> 1) ^ -(offset & 1)
        records.append((delta, offset, key_at, key_size, value_at, value_size, headers, headers_at))
    return end, header_count_max


def _skip_headers(data: bytes | memoryview, position: int, count_max: int) -> tuple[int, int, int]:
    """Return the header count at `position`, and the start and end of the headers."""
    count, start = read_varint(data, position, MAX_VARINT_SIZE)
    if count < 0:
        raise Malformed(f"{count} headers")
    if count > count_max:
        if count > len(data) - start:
            raise Malformed(f"{count} headers in {len(data) - start} bytes")
        raise TooManyHeaders(f"{count} headers in a record, {count_max} are left of the limit")
    position = start
    for _ in range(count):
        size, position = read_varint(data, position, MAX_VARINT_SIZE)
        if size < 0:
            raise Malformed(f"a header key of {size} bytes")
        size, position = read_varint(data, position + size, MAX_VARINT_SIZE)
        if size > 0:
            position += size
    return count, start, position


def read_headers(data: bytes | memoryview, position: int, count: int) -> Headers:
    """Return the `count` headers at `position`. Requires: `parse_records` has checked them.

    A key that is not UTF-8 gets replacement characters, as in Java's String.
    """
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position, MAX_VARINT_SIZE)
        key = str(data[position : position + size], "utf-8", "replace")
        size, position = read_varint(data, position + size, MAX_VARINT_SIZE)
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, bytes(data[position : position + size])))
            position += size
    return tuple(headers)
