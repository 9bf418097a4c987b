"""The plain loop over the records of a batch: the definition of what is valid.

Every faster form in this package accepts only what it can prove to be read here in the same way,
and hands everything else to this loop, which is also the only place that finds errors.
"""

from __future__ import annotations

from wire.records.errors import InvalidRecord
from wire.records.varint import MAX_VARINT_SIZE, MAX_VARLONG_SIZE, read_unsigned, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.record import Header, Headers

    # timestamp delta, offset delta, key position and size, value position and size (sizes are
    # negative for null), number of headers, position of the first one
    Fields = tuple[int, int, int, int, int, int, int, int]

# length, attributes, timestamp delta, offset delta, key length, value length, header count
RECORD_SIZE_MIN = 7


def parse_records(data: bytes | memoryview, count: int) -> list[Fields]:
    """Return the fields of the `count` records which fill `data` exactly.

    As Kafka does, this tolerates record attributes, any order of offset deltas, lengths below -1
    (they are null too), and header keys that are not UTF-8.

    Raises:
        InvalidRecord: a record is malformed, or `data` holds fewer or more than `count`.
    """
    if count < 0:
        raise InvalidRecord(-1, f"a batch of {count} records")
    size = len(data)
    fields: list[Fields] = []
    append = fields.append
    end = 0
    index = 0
    try:
        for index in range(count):
            position = end
            number = data[position]
            position += 1
            if number > 0x7F:
                more = data[position]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    position += 1
                else:
                    number, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)
            length = (number >> 1) ^ -(number & 1)
            end = position + length
            if length < 0 or end > size:
                raise InvalidRecord(index, f"{length} bytes long, {size - position} remain")
            position += 1  # attributes

            number = data[position]
            position += 1
            if number > 0x7F:
                more = data[position]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    position += 1
                else:
                    number, position = read_unsigned(data, position - 1, MAX_VARLONG_SIZE)
            delta = (number >> 1) ^ -(number & 1)

            number = data[position]
            position += 1
            if number > 0x7F:
                more = data[position]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    position += 1
                else:
                    number, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)
            offset = (number >> 1) ^ -(number & 1)

            number = data[position]
            position += 1
            if number > 0x7F:
                number, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)
            key_position = position
            if number & 1:
                key_size = ~(number >> 1)
            else:
                key_size = number >> 1
                position += key_size

            number = data[position]
            position += 1
            if number > 0x7F:
                more = data[position]
                if more < 0x80:
                    number = number & 0x7F | more << 7
                    position += 1
                else:
                    number, position = read_unsigned(data, position - 1, MAX_VARINT_SIZE)
            value_position = position
            if number & 1:
                value_size = ~(number >> 1)
            else:
                value_size = number >> 1
                position += value_size

            header_count = data[position]
            if header_count == 0:
                position += 1
                headers_position = position
            else:
                header_count, headers_position = read_varint(data, position, MAX_VARINT_SIZE)
                position = skip_headers(data, headers_position, header_count, index)
            if position != end:
                raise InvalidRecord(index, f"its fields end at {position}, its length says {end}")
            append(
                (
                    delta,
                    offset,
                    key_position,
                    key_size,
                    value_position,
                    value_size,
                    header_count,
                    headers_position,
                )
            )
    except IndexError:
        raise InvalidRecord(index, "the records end early") from None
    except ValueError as error:
        if isinstance(error, InvalidRecord):
            raise
        raise InvalidRecord(index, str(error)) from None
    if end != size:
        raise InvalidRecord(-1, f"{size - end} bytes after the last of {count} records")
    return fields


def skip_headers(data: bytes | memoryview, position: int, count: int, index: int) -> int:
    """Return the position after `count` headers of record `index`.

    Raises:
        InvalidRecord: the count or the size of a header's key is negative.
        IndexError, ValueError: the data ends early, or a varint is too long.
    """
    if count < 0:
        raise InvalidRecord(index, f"{count} headers")
    for _ in range(count):
        size, position = read_varint(data, position, MAX_VARINT_SIZE)
        if size < 0:
            raise InvalidRecord(index, f"a header key of {size} bytes")
        size, position = read_varint(data, position + size, MAX_VARINT_SIZE)
        if size > 0:
            position += size
    return position


def read_headers(data: bytes | memoryview, position: int, count: int) -> Headers:
    """Return the `count` headers at `position`, which `parse_records` has checked.

    A key that is not UTF-8 is shown with replacement characters, as Java's String does.
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
