"""Reading runs of records that have the same size: guess the positions, then prove them.

Most batches consist of long runs of records of one size. The first record of a run gives the
stride, the expected distance between records. One byte of every record's header is a column,
`data[place::stride]` (a loop in C), which is compared with the expected bytes. If every record has
the expected length, every record lies at the expected position, by induction. If the other bytes of
the headers match as well, the fields have the same places as in the first record. So a run is
proven to equal the result of the plain loop, at a few ns a record.

A run ends where offset or timestamp deltas need one byte more (at 64 and 8192), or where the length
of a key or value changes. Batches with short runs are read in other ways: see `choose`.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct

from wire.records.decode.loop import RECORD_SIZE_MIN
from wire.records.known import KNOWN, Known
from wire.records.varint import (
    INT64_MAX,
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    SMALL,
    SMALL_NUMBERS,
    Malformed,
    distinct,
    read_varint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wire.records.record import Buffer

    # The headers of a run's records as (buffer, start, stride): byte `place` of the header of
    # record i is at buffer[start + place + i * stride].
    Heads = tuple[bytes | memoryview, int, int]

# For fewer records the plain loop is as fast.
COUNT_MIN = 8
# Batches with larger offset deltas are read in other ways: their columns would grow without limit.
OFFSET_DELTA_END = 1 << 17
# A batch is read in another way if it has more runs than RUNS_FREE + records / RUN_LENGTH_MIN.
RUN_LENGTH_MIN = 16
RUNS_FREE = 3

# Payloads of small records are copied to `bytes`: a column of `bytes` costs 0.7 ns a record, one of
# a memoryview 6.6.
COPY_RECORD_SIZE_MAX = 512
COPY_SIZE_MAX = 64 << 10
# If the payload is not copied, the headers of runs of at least this many records are. This needs
# the import of numpy. Without this copy, the scan of varying batches of 500 to 900 x 1 KiB takes
# 1.6 times as long.
PACKED_COUNT_MIN = 400
PACKED_SIZE_MAX = 64

# From this many records on, numpy decodes deltas of several bytes: 1,000 in 10 us instead of 200.
NUMPY_COUNT_MIN = 100

# One call of struct unpacks this many records. A run ends at record 64 anyway.
CHUNK = 64

_HIGH_BYTES = bytes(range(0x80, 0x100))


class Run:
    """`count` records from number `index`, the first at `position`, each `stride` bytes long.

    The key and the value are `key_at` and `value_at` bytes behind the start of a record, and have
    `key_size` and `value_size` bytes (negative: null). `varying_deltas` has the timestamp delta of
    each record: as numbers, or as `bytes` if every varint has one byte. If it is empty, `delta` is
    the timestamp delta of all records.
    """

    __slots__ = (
        "count",
        "delta",
        "index",
        "key_at",
        "key_size",
        "position",
        "stride",
        "value_at",
        "value_size",
        "varying_deltas",
    )

    index: int
    count: int
    position: int
    stride: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    delta: int
    varying_deltas: Sequence[int]

    def distinct_deltas(self) -> Sequence[int]:
        """Return the timestamp deltas in any order. Deltas of one byte come without duplicates."""
        if not self.varying_deltas:
            return (self.delta,)
        if type(self.varying_deltas) is bytes:
            return [SMALL_NUMBERS[raw] for raw in distinct(self.varying_deltas)]
        return self.varying_deltas


def in_fastest_form(payload: Buffer, count: int) -> bytes | memoryview:
    """Return the payload as `bytes`, or uncopied if a copy would cost more than it saves."""
    if type(payload) is bytes:
        return payload
    size = len(payload)
    if size <= COPY_SIZE_MAX or size <= COPY_RECORD_SIZE_MAX * count:
        return bytes(payload)
    return payload if type(payload) is memoryview else memoryview(payload)


def find_runs(data: bytes | memoryview, count: int, known: Known = KNOWN) -> list[Run] | None:
    """Return the runs that make up `data`, or None if it must be read in another way.

    If there is a result, `data` holds exactly `count` valid records without headers, and their
    offset deltas are 0, 1, 2, ...
    """
    if not COUNT_MIN <= count <= OFFSET_DELTA_END or count * RECORD_SIZE_MIN > len(data):
        return None
    runs: list[Run] = []
    index = position = 0
    while index < count:
        if len(runs) > RUNS_FREE + index // RUN_LENGTH_MIN:
            return None
        run = _run_at(data, position, index, count, known)
        if run is None:
            return None
        runs.append(run)
        index += run.count
        position += run.count * run.stride
    return runs if position == len(data) else None


def _run_at(
    data: bytes | memoryview, position: int, index: int, count: int, known: Known
) -> Run | None:
    """Return the run that begins with record `index` at `position`, or None if it is unusual."""
    try:
        length, body = read_varint(data, position, MAX_VARINT_SIZE)
        delta, offset_start = read_varint(data, body + 1, MAX_VARLONG_SIZE)
        offset, key_size_start = read_varint(data, offset_start, MAX_VARINT_SIZE)
        key_size, key_start = read_varint(data, key_size_start, MAX_VARINT_SIZE)
        key_end = key_start + key_size if key_size > 0 else key_start
        value_size, value_start = read_varint(data, key_end, MAX_VARINT_SIZE)
        last = value_start + value_size if value_size > 0 else value_start
        offset_size = key_size_start - offset_start
        is_usual = (
            offset == index
            and OFFSET_STARTS[offset_size] <= index < OFFSET_STARTS[offset_size + 1]
            and last == body + length - 1
            and data[last] == 0  # the header count
        )
    except (IndexError, Malformed):
        return None
    stride = last + 1 - position
    is_alone = data[position:body] != data[position + stride : body + stride]
    # If even the second record of the batch has another length, most lengths probably differ.
    if not is_usual or (is_alone and index == 0):
        return None

    run = Run()
    run.index = index
    run.position = position
    run.stride = stride
    run.key_at = key_start - position
    run.key_size = key_size
    run.value_at = value_start - position
    run.value_size = value_size
    run.delta = delta
    run.count = min(OFFSET_STARTS[offset_size + 1], count) - index
    run.count = min(run.count, (len(data) - position) // stride)
    if is_alone:
        run.count = 1
    at_offset, at_key_size = offset_start - position, key_size_start - position
    at_value_size = key_end - position
    constants = [0, at_key_size, at_value_size]
    for start, stop in (
        (0, body - position),
        (at_key_size, run.key_at),
        (at_value_size, run.value_at),
    ):
        constants += range(start + 1, stop)
    _require_constants((data, position, stride), run, [stride - 1])
    heads = _heads(data, run)
    _require_constants(heads, run, constants)
    _require_offsets(heads, run, at_offset, offset_size, known)
    _require_deltas(heads, run, body + 1 - position, at_offset)
    return run


def _heads(data: bytes | memoryview, run: Run) -> Heads:
    """Return the headers of the run's records, up to the values."""
    width = run.value_at
    if type(data) is bytes or run.count < PACKED_COUNT_MIN or width > PACKED_SIZE_MAX:
        return data, run.position, run.stride
    from numpy import ndarray

    words = ndarray(run.count, f"V{width}", data, run.position, run.stride)
    return words.tobytes(), 0, width


def _column(heads: Heads, place: int, count: int) -> bytes:
    """Return byte `place` of each of the first `count` headers."""
    buffer, start, stride = heads
    start += place
    column = buffer[start : start + (count - 1) * stride + 1 : stride]
    # Call `bytes` only for a memoryview: for a `bytes` object the call would still take a third of
    # the time of the loops in the callers.
    return column if type(column) is bytes else bytes(column)


def _require_constants(heads: Heads, run: Run, places: list[int]) -> None:
    """End the run before a record that differs from the run's first one in one of `places`."""
    for place in places:
        column = _column(heads, place, run.count)
        first = column[:1]
        if column != first * run.count:
            run.count -= len(column.lstrip(first))


def _require_offsets(heads: Heads, run: Run, start: int, size: int, known: Known) -> None:
    """End the run before the first record whose offset delta is not consecutive."""
    first = run.index - OFFSET_STARTS[size]
    for place in range(size):
        expected = _offset_column(size, place, known)[first : first + run.count]
        column = _column(heads, start + place, run.count)
        if column != expected:
            run.count = _equal_count(column, expected)


def _require_deltas(heads: Heads, run: Run, start: int, stop: int) -> None:
    """End the run before the first timestamp delta of another size; store the run's deltas."""
    columns = []
    for place in range(start, stop):
        column = _column(heads, place, run.count)
        columns.append(column)
        if column != column[:1] * run.count:
            # All bytes of a varint except the last one have the top bit set.
            run.count -= len(column.lstrip(SMALL if place == stop - 1 else _HIGH_BYTES))
    run.varying_deltas = _varying(columns, run.count)


def _varying(columns: list[bytes], count: int) -> Sequence[int]:
    """Return the first `count` timestamp deltas of `columns`, as `Run.varying_deltas` has them."""
    first = columns[0][:count]
    if len(columns) == 1:
        return () if first == first[:1] * count else first
    deltas = (_decoded if count >= NUMPY_COUNT_MIN else _decoded_plainly)(columns, count)
    return () if deltas.count(deltas[0]) == count else deltas


def _decoded(columns: list[bytes], count: int) -> list[int]:
    """Return the first `count` numbers whose varint bytes are in `columns`, cut to 64 bits."""
    import numpy as np

    number = np.zeros(count, np.uint64)
    for place, column in enumerate(columns):
        octets = np.frombuffer(column, np.uint8, count).astype(np.uint64)
        number |= (octets & np.uint64(0x7F)) << np.uint64(7 * place)
    signs = (number & np.uint64(1)).view(np.int64)
    deltas: list[int] = ((number >> np.uint64(1)).view(np.int64) ^ -signs).tolist()
    return deltas


def _decoded_plainly(columns: list[bytes], count: int) -> list[int]:
    numbers = [octet & 0x7F for octet in columns[0][:count]]
    for place, column in enumerate(columns[1:], 1):
        shift = 7 * place
        numbers = [n | (octet & 0x7F) << shift for n, octet in zip(numbers, column)]  # noqa: B905
    return [(n >> 1 & INT64_MAX) ^ -(n & 1) for n in numbers]


def _equal_count(left: bytes, right: bytes) -> int:
    """Return the length of the common prefix, found by bisection."""
    equal, end = 0, min(len(left), len(right))
    while equal < end:
        middle = (equal + end + 1) // 2
        if left[equal:middle] == right[equal:middle]:
            equal = middle
        else:
            end = middle - 1
    return equal


# --- keys and values ------------------------------------------------------------------------------


def keys_and_values(
    data: bytes | memoryview, run: Run, known: Known = KNOWN
) -> tuple[Iterable[bytes | None], Iterable[bytes | None]]:
    """Return the keys and the values of a run, as copies."""
    if run.key_size < 0:
        return repeat(None, run.count), field_of(data, run, run.value_at, run.value_size, known)
    if run.value_size < 0:
        return field_of(data, run, run.key_at, run.key_size, known), repeat(None, run.count)
    fields = _unpack(data, run, ((run.key_at, run.key_size), (run.value_at, run.value_size)), known)
    return fields[0::2], fields[1::2]


def field_of(
    data: bytes | memoryview, run: Run, at: int, size: int, known: Known = KNOWN
) -> Iterable[bytes | None]:
    """Return a copy of each record's field that begins `at` bytes behind the record's start."""
    if size < 0:
        return repeat(None, run.count)
    return _unpack(data, run, ((at, size),), known)


def _unpack(
    data: bytes | memoryview, run: Run, places: tuple[tuple[int, int], ...], known: Known
) -> Sequence[bytes]:
    """Return the fields at `places` of all records of the run, record by record."""
    position = run.position
    stride = run.stride
    chunks, rest = divmod(run.count, CHUNK)
    fields: list[bytes] = []
    if chunks:
        unpack_from = _unpacker(stride, places, CHUNK, known).unpack_from
        for _ in range(chunks):
            fields += unpack_from(data, position)
            position += CHUNK * stride
    for size in (16, 1):
        parts, rest = divmod(rest, size)
        if parts:
            unpack_from = _unpacker(stride, places, size, known).unpack_from
            for _ in range(parts):
                fields += unpack_from(data, position)
                position += size * stride
    return fields


def _unpacker(stride: int, places: tuple[tuple[int, int], ...], count: int, known: Known) -> Struct:
    """Return a Struct that cuts the fields at `places` out of `count` records in one call."""
    unpacker: Struct | None = known.unpackers.get((stride, places, count))
    if unpacker is None:
        position = 0
        form = ""
        for at, size in places:
            form += f"{at - position}x{size}s"
            position = at + size
        unpacker = Struct((form + f"{stride - position}x") * count)
        known.unpackers.keep((stride, places, count), unpacker)
    return unpacker


# --- offset deltas --------------------------------------------------------------------------------

OFFSET_STARTS = (
    0,
    0,
    1 << 6,
    1 << 13,
    1 << 20,
    1 << 27,
    1 << 31,
)  # by size: the first offset delta whose varint has this size


def _offset_column(size: int, place: int, known: Known) -> bytes:
    """Return byte `place` of the varint of every offset delta whose varint has `size` bytes.

    A delta d is written as 2 * d: the first byte has the low 6 bits of d, each later byte 7 more.
    """
    column = known.offset_columns.get((size, place))
    if column is None:
        start = OFFSET_STARTS[size]
        end = min(OFFSET_STARTS[size + 1], OFFSET_DELTA_END)
        more = 0x80 if place < size - 1 else 0
        if place == 0:
            column = bytes(more | low << 1 for low in range(64)) * ((end - start) // 64)
        else:
            period = 64 << 7 * (place - 1)
            column = b"".join(
                bytes((more | delta // period & 0x7F,)) * period
                for delta in range(start, end, period)
            )
        known.offset_columns.keep((size, place), column)
    return column
