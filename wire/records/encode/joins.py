"""Encoding the records section of a batch as a list of pieces for one `bytes.join`.

The bytes before a value, its *head*, depend on a few small numbers: the lengths, and the size of
the offset delta. Tables hold all heads, so that every step over the records is a loop in C. The
last byte of a record, its header count of 0, is part of the next record's head. A bare join of
1,000 values of 100 B is the measure: encoding takes 4 times as long if all have one length, 10
times if the lengths vary, 20 times with keys, and 80 times in the plain loop.
"""

from __future__ import annotations

from _operator import add
from itertools import repeat

from wire.records.known import KNOWN, Known
from wire.records.varint import TABLE_SIZE_MAX, VARINTS, Table, encode_varint, varint_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from wire.records.record import Buffer, Headers

TEMPLATE_COUNT_MAX = 1 << 14  # a template of more records is not cached; 48 B a record


def encode_records(
    values: Sequence[Buffer | None],
    keys: Sequence[Buffer | None] | None,
    deltas: list[int] | None,
    headers: Sequence[Headers | None] | None,
    known: Known = KNOWN,
) -> list[Buffer]:
    """Return pieces that join to the records section. The offset deltas are 0, 1, 2, ...

    `deltas` are the timestamp deltas, None if all are 0. `keys` and `headers` are None for records
    without them.
    """
    if headers is not None and any(headers):
        return _encode_plainly(values, keys, deltas, headers)
    count = len(values)
    if count == 1 and deltas is None:
        return _join_one(values[0], keys[0] if keys else None)
    value_sizes, present_values = _sizes(values)
    is_uniform = value_sizes.count(value_sizes[0]) == count
    if keys is None:
        if is_uniform:
            return _join_uniform(None, present_values, (-1, value_sizes[0]), deltas, known)
        if deltas is None:
            tails = map(NO_KEY_TAILS.__getitem__, value_sizes)
            offsets = _offset_deltas(count, known)
            return _join_columns(NO_KEY_HEADS, value_sizes, [offsets, tails, present_values])
        columns = [map(NO_KEY_TAILS.__getitem__, value_sizes), present_values]
        sizes = map(add, map(FIELD_SIZES.__getitem__, value_sizes), repeat(1))
    else:
        key_sizes, present_keys = _sizes(keys)
        if is_uniform and key_sizes.count(key_sizes[0]) == count:
            key_column = None if key_sizes[0] < 0 else present_keys
            uniform_sizes = key_sizes[0], value_sizes[0]
            return _join_uniform(key_column, present_values, uniform_sizes, deltas, known)
        columns = [
            map(VARINTS.__getitem__, key_sizes),
            present_keys,
            map(VARINTS.__getitem__, value_sizes),
            present_values,
        ]
        sizes = map(
            add,
            map(FIELD_SIZES.__getitem__, key_sizes),
            map(FIELD_SIZES.__getitem__, value_sizes),
        )
    if deltas is None:
        return _join_columns(HEADS, list(sizes), [_offset_deltas(count, known), *columns])
    delta_varints = list(map(VARINTS.__getitem__, deltas))
    sizes = map(add, sizes, map(len, delta_varints))
    columns = [delta_varints, _offset_deltas(count, known), *columns]
    return _join_columns(HEADS_BEFORE_DELTA, list(sizes), columns)


def encode_uniform(values: Sequence[bytes], size: int, known: Known = KNOWN) -> bytes | None:
    """Return the records section for values without keys. The `len` of each value is `size`.

    Return None if a value's size in bytes differs from its `len`, as in some memoryviews.
    """
    parts, whole_size = _uniform_parts(size, len(values), known)
    parts[1::2] = values
    body = b"".join(parts)
    return body if len(body) == whole_size else None


def encode_lone_value(value: bytes | None) -> bytes:
    """Return the records section of one record without key, timestamp delta and headers."""
    if value is None:
        return _LONE_HEADS[-1] + b"\0"
    return _LONE_HEADS[len(value)] + value + b"\0"


def _sizes(
    fields: Sequence[Buffer | None],
) -> tuple[list[int], Sequence[Buffer]]:
    """Return the length of each field (-1 for null), and the fields, with b"" for null."""
    try:
        return list(map(len, fields)), fields  # type: ignore[arg-type, return-value]
    except TypeError:
        sizes = [-1 if field is None else len(field) for field in fields]
        return sizes, [b"" if field is None else field for field in fields]


def _join_one(value: Buffer | None, key: Buffer | None) -> list[Buffer]:
    value_size = -1 if value is None else len(value)
    if key is None:
        head = NO_KEY_HEADS[1][value_size][1:]
        return [head, b"\0", NO_KEY_TAILS[value_size], value or b"", b"\0"]
    key_size = len(key)
    head = HEADS[1][FIELD_SIZES[key_size] + FIELD_SIZES[value_size]][1:]
    return [head, b"\0", VARINTS[key_size], key, VARINTS[value_size], value or b"", b"\0"]


def _join_uniform(
    keys: Sequence[Buffer] | None,
    values: Sequence[Buffer],
    sizes: tuple[int, int],
    deltas: list[int] | None,
    known: Known,
) -> list[Buffer]:
    """Join records with keys of one size and values of one size; a key size of -1 means no keys."""
    key_size, value_size = sizes
    count = len(values)
    if keys is None and deltas is None:
        parts, _ = _uniform_parts(value_size, count, known)
        parts[1::2] = values
        return parts
    if deltas is None:
        columns: list[Sequence[Buffer] | None] = [template(key_size, value_size, count, known)]
    else:
        fields_size = FIELD_SIZES[key_size] + FIELD_SIZES[value_size]
        offsets = template(key_size, value_size, count, known, has_heads=False)
        columns = [_heads_before_deltas(deltas, fields_size), offsets]
    if keys is not None:
        columns += [keys, None]
    columns.append(values)
    width = len(columns)
    parts = [VARINTS[value_size]] * (width * count + 1)
    for place, column in enumerate(columns):
        if column is not None:
            parts[place:-1:width] = column
    return _without_first_byte(parts)


def _uniform_parts(value_size: int, count: int, known: Known) -> tuple[list[Any], int]:
    """Return pieces with gaps for `count` values of one size, and the size of the joined result."""
    ready = known.ready_parts.get(value_size)
    if ready is not None and len(ready[0]) == 2 * count + 1:
        return ready[0][:], ready[1]
    parts: list[Buffer] = [b""] * (2 * count + 1)
    parts[0:-1:2] = template(-1, value_size, count, known)
    _without_first_byte(parts)
    whole_size = uniform_size(-1, value_size, count)
    if count <= TEMPLATE_COUNT_MAX:
        known.ready_parts.keep(value_size, (parts[:], whole_size))
    return parts, whole_size


def _heads_before_deltas(deltas: list[int], fields_size: int) -> list[bytes]:
    """Return the bytes before the offset delta of each record, for fields of one size.

    If timestamps repeat, a head is made once for each distinct delta: 1,000 x 100 B take 90 us, by
    columns 185. If most deltas differ, columns are faster: 165 us instead of 330.
    """
    distinct = set(deltas)
    is_repeating = 4 * len(distinct) <= len(deltas)
    made: list[bytes] = []
    for start, stop, offset_size in offset_sizes(len(deltas)):
        table = HEADS_BEFORE_DELTA[offset_size]
        here = deltas[start:stop]
        if is_repeating:
            heads = {}
            for delta in distinct:
                varint = VARINTS[delta]
                heads[delta] = table[fields_size + len(varint)] + varint
            made += map(heads.__getitem__, here)
        else:
            varints = list(map(VARINTS.__getitem__, here))
            sizes = map(add, map(len, varints), repeat(fields_size))
            made += map(add, map(table.__getitem__, sizes), varints)
    return made


def _join_columns(
    tables: tuple[dict[int, bytes], ...], sizes: list[int], columns: Sequence[Iterable[Buffer]]
) -> list[Buffer]:
    """Put a head before each record's fields; `sizes` has the key of each head in `tables`."""
    count = len(sizes)
    width = len(columns) + 1
    parts: list[Buffer] = [b""] * (width * count + 1)
    for start, stop, offset_size in offset_sizes(count):
        heads = tables[offset_size].__getitem__
        parts[width * start : width * stop : width] = map(heads, sizes[start:stop])
    for index, column in enumerate(columns, 1):
        parts[index::width] = column
    return _without_first_byte(parts)


def _without_first_byte(parts: list[Buffer]) -> list[Buffer]:
    """Move the header count in front of the first record to the end of the last record."""
    parts[0] = parts[0][1:]
    parts[-1] = b"\0"
    return parts


def offset_sizes(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, stop, size): the offset deltas from start to stop - 1 have `size` bytes."""
    start = 0
    for offset_size, stop in ((1, 1 << 6), (2, 1 << 13), (3, 1 << 20), (4, 1 << 27), (5, 1 << 31)):
        if count <= stop:
            yield start, count, offset_size
            return
        yield start, stop, offset_size
        start = stop


def _encode_plainly(
    values: Sequence[Buffer | None],
    keys: Sequence[Buffer | None] | None,
    deltas: list[int] | None,
    headers: Sequence[Headers | None],
) -> list[Buffer]:
    return [
        encode_record(
            offset_delta=index,
            timestamp_delta=delta,
            key=key,
            value=value,
            headers=record_headers,
        )
        for index, (value, key, delta, record_headers) in enumerate(
            zip(
                values,
                repeat(None) if keys is None else keys,
                repeat(0) if deltas is None else deltas,
                headers,
                strict=False,  # `repeat` is endless
            )
        )
    ]


def encode_record(
    *,
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Headers | None = None,
) -> bytes:
    """Return the bytes of one record. The faster functions here must give equal bytes."""
    body = [b"\0", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    for field in (key, value):
        if field is None:
            body.append(b"\x01")
        else:
            body += (encode_varint(len(field)), bytes(field))
    body.append(encode_headers(headers))
    record = b"".join(body)
    return encode_varint(len(record)) + record


def encode_headers(headers: Headers | None) -> bytes:
    """Return the header count and the headers, which end a record."""
    if not headers:
        return b"\0"
    parts = [encode_varint(len(headers))]
    for name, value in headers:
        key = name.encode()
        parts += (encode_varint(len(key)), key)
        if value is None:
            parts.append(b"\x01")
        else:
            parts += (encode_varint(len(value)), value)
    return b"".join(parts)


class _FieldSizes(dict[int, int]):
    """A cache, length of a key or value (-1: null) -> its encoded size with the length field."""

    __slots__ = ()

    def __missing__(self, length: int) -> int:
        size = varint_size(length) + max(length, 0)
        if len(self) < TABLE_SIZE_MAX:
            self[length] = size
        return size


def _head(size: int) -> bytes:
    """Return the last byte of the previous record, then the length and attributes of this one."""
    return b"\0" + encode_varint(size) + b"\0"


def _tables(fixed: int, after: bytes, to_size: Callable[[int], int]) -> tuple[Table, ...]:
    """Return tables of heads: table `n` is for offset deltas of `n` bytes (table 0 is unused).

    A head is made for a number, the key of the table. `fixed` plus the size of the offset delta
    plus `to_size(number)` is the size of the record. `after` are bytes that follow the attributes.
    """

    def table(rest: int) -> Table:
        return Table(lambda size: _head(rest + to_size(size)) + after)

    return tuple(table(fixed + offset_size) for offset_size in range(6))


FIELD_SIZES = _FieldSizes()

# Heads of records with timestamp delta 0, by the encoded size of key and value together.
HEADS = _tables(3, b"\0", lambda size: size)
# Heads up to a timestamp delta other than 0, by the encoded size of delta, key and value together.
HEADS_BEFORE_DELTA = _tables(2, b"", lambda size: size)
# Heads of records with timestamp delta 0 and no key, by the length of the value, in two parts: the
# offset delta stands between a NO_KEY_HEADS and a NO_KEY_TAILS part.
NO_KEY_HEADS = _tables(4, b"\0", FIELD_SIZES.__getitem__)
NO_KEY_TAILS = Table(lambda size: b"\x01" + encode_varint(size))
# All bytes before the value of the only record of a batch, by the length of the value.
_LONE_HEADS = Table(lambda size: NO_KEY_HEADS[1][size][1:] + b"\0" + NO_KEY_TAILS[size])


def template(
    key_size: int, value_size: int, count: int, known: Known, *, has_heads: bool = True
) -> list[bytes]:
    """Return the bytes before the key of each of `count` records, with timestamp delta 0.

    With a `key_size` of -1 the records have no keys: return the bytes before the value. If
    `has_heads` is False, the bytes begin with the offset delta.
    """
    kept = known.templates.get((key_size, value_size, has_heads))
    if kept is not None and len(kept) >= count:
        return kept if len(kept) == count else kept[:count]
    # Round the number of records up to a power of two, so that templates rarely have to grow.
    wanted = max(1 << (count - 1).bit_length(), 64) if count <= TEMPLATE_COUNT_MAX else count
    after = VARINTS[key_size] + (VARINTS[value_size] if key_size < 0 else b"")
    made = [offset + after for offset in _offset_deltas(wanted, known)]
    if has_heads:
        size = FIELD_SIZES[key_size] + FIELD_SIZES[value_size]
        made = [
            HEADS[offset_size][size] + rest
            for start, stop, offset_size in offset_sizes(wanted)
            for rest in made[start:stop]
        ]
    if wanted <= TEMPLATE_COUNT_MAX:
        known.templates.keep((key_size, value_size, has_heads), made)
    return made[:count]


def uniform_size(key_size: int, value_size: int, count: int) -> int:
    """Return the size of `count` records with these sizes and timestamp deltas of one byte."""
    fields = FIELD_SIZES[key_size] + FIELD_SIZES[value_size]
    size = 0
    for start, stop, offset_size in offset_sizes(count):
        # attributes, timestamp delta, offset delta, key, value, headers
        length = 3 + offset_size + fields
        size += (stop - start) * (varint_size(length) + length)
    return size


def _offset_deltas(count: int, known: Known) -> list[bytes]:
    """Return the varints of 0..count-1."""
    kept = known.offset_deltas
    if len(kept) < count:
        wanted = max(count, min(2 * len(kept), TABLE_SIZE_MAX), 64)
        kept = kept + [encode_varint(delta) for delta in range(len(kept), wanted)]
        if count <= TABLE_SIZE_MAX:
            known.offset_deltas = kept
    return kept if len(kept) == count else kept[:count]
