"""The plainest batches, compared whole: values of one length and nothing else.

No keys, no headers, timestamps within 64 ms: then the length of the first value and the count tell
every byte of the batch that is neither value nor timestamp. numpy gathers these bytes, in place,
for comparisons of bytes: 5 ns a record, whatever the size of the values. That is for large batches,
and for readers in columns.
"""

from __future__ import annotations

from wire.records.decode.fast.strides.layout import Run
from wire.records.encode.joins import offset_sizes, template, uniform_size
from wire.records.varint import MAX_VARINT_SIZE, Malformed, read_varint, varint_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # how many words to gather, of what kind, from where, how far apart; what must be found there
    # (also as an array, with those of its bits that count whatever the timestamps are, and the
    # bytes that are their deltas)
    _Gather = tuple[tuple[int, int], Any, int, tuple[int, int], bytes, tuple[Any, Any, slice]]
    # the head of the first record, and the gathers of all others
    _Proof = tuple[bytes, list[_Gather]]

COUNT_MIN = 8
RUNS_COUNT_MAX = 1 << 13  # beyond, the last record may be longer than the guess below
HEADS_MAX = 64
RUNS_KEPT_MAX = 16  # of up to 16 B a record

_SMALL_DELTAS = {raw: (raw >> 1) ^ -(raw & 1) for raw in range(128)}

_numpy_array: Any = None

# By value size and index of the first record whose offset delta takes as many bytes: how many bytes
# there are between two values, and the bytes between, of so many records as were asked for.
_heads: dict[tuple[int, int], tuple[int, bytes]] = {}
# By size of the data and number of records: the runs of the last such batch, and what proves them.
_runs: dict[tuple[int, int], tuple[list[Run], _Proof]] = {}


def find_plain_runs(data: bytes | memoryview, count: int) -> list[Run] | None:
    """Return the runs of `count` such records that fill `data`, or None if it is not so plain.

    Here the timestamps may differ, by less than 64 ms from the first. Needs numpy, and is exact.
    """
    if not COUNT_MIN <= count <= RUNS_COUNT_MAX:
        return None
    size = len(data)
    known = _runs.get((size, count))
    if known is not None:
        return _proven(data, *known)
    value_size = _plain_value_size(data, count)
    if value_size < 0:
        return None
    known = _prove(value_size, count)
    runs = _proven(data, *known)
    if runs is not None:
        if len(_runs) >= RUNS_KEPT_MAX:
            _runs.clear()
        _runs[size, count] = known
    return runs


def _prove(value_size: int, count: int) -> tuple[list[Run], _Proof]:
    """The runs of `count` records, and what proves them."""
    runs: list[Run] = []
    position = 0
    for start, stop, _ in offset_sizes(count):
        head_size, _ = _heads_of(value_size, start, stop)
        runs.append(_plain_run(start, stop - start, position, head_size, value_size))
        position += (stop - start) * (head_size + value_size)
    head_size, heads = _heads_of(value_size, 0, 1)
    return runs, (heads[1:head_size], [_gather(run) for run in runs])


def _plain_run(index: int, count: int, position: int, head_size: int, value_size: int) -> Run:
    run = Run()
    run.index = index
    run.count = count
    run.position = position
    run.stride = head_size + value_size
    run.key_at = head_size - 1 - varint_size(value_size)
    run.key_size = -1
    run.value_at = head_size - 1
    run.value_size = value_size
    run.delta = 0
    run.raw_deltas = ()
    run.decoded_deltas = {}
    return run


def _proven(data: bytes | memoryview, runs: list[Run], proof: _Proof) -> list[Run] | None:
    """The runs that fill `data`, if all that stands around the values is as it must be."""
    first_head, gathers = proof
    # The end of the last record; the others end in the head of the next.
    if data[-1] or data[: len(first_head)] != first_head:
        return None
    ndarray = _numpy_array or _load_numpy_array()
    found: list[Run] = []
    for run, (shape, form, position, strides, expected, free) in zip(runs, gathers):  # noqa: B905
        words = ndarray(shape, form, data, position, strides).tobytes()
        if words == expected:
            found.append(run)
            continue
        known, fixed, place = free
        if ((ndarray(known.shape, form, words) ^ known) & fixed).any():
            return None
        raw = words[place]
        found.append(_run_with(run, raw if run.index else b"\0" + raw))
    return found


def _run_with(plain: Run, raw: bytes) -> Run:
    """The run with these timestamp deltas. A byte without its top bit is a whole varint."""
    run = _plain_run(plain.index, plain.count, plain.position, plain.value_at + 1, plain.value_size)
    run.delta = _SMALL_DELTAS[raw[0]]
    run.raw_deltas, run.decoded_deltas = raw, _SMALL_DELTAS
    return run


def _delta_at(run: Run) -> int:
    """Where the timestamp delta is in a record: before the offset delta and the key's size."""
    offset_size = 2 if run.index else 1
    return run.key_at - 1 - offset_size - 1


def _load_numpy_array() -> Any:
    # Kept, as an import statement takes half as long as what follows it.
    global _numpy_array  # noqa: PLW0603
    from numpy import ndarray

    _numpy_array = ndarray
    return ndarray


def _gather(run: Run) -> _Gather:
    """What proves the heads of a run, but that of the very first record.

    numpy copies words of 8 bytes three times as fast as items of another size, so a head is taken
    as several words at even distances, which may overlap.
    """
    import numpy as np

    # No record is before the first one, of which to take the last byte.
    skipped = 0 if run.index else 1
    count = run.count - skipped
    head_size, heads = _heads_of(run.value_size, run.index, run.index + run.count)
    width = 8 if head_size >= 8 else 4
    words = -(-head_size // width)
    while words > 1 and (head_size - width) % (words - 1):
        words += 1
    distance = (head_size - width) // (words - 1) if words > 1 else 0
    form = np.dtype(f"<u{width}")
    shape = words, count

    def gather(heads: bytes) -> bytes:
        begin = skipped * head_size
        return np.ndarray(shape, form, heads, begin, (distance, head_size)).tobytes()

    expected = gather(heads)
    # The bits of the timestamp deltas do not count.
    bits = bytearray(b"\xff" * head_size)
    bits[1 + _delta_at(run)] = 0x80
    fixed = gather(bytes(bits) * run.count)
    first = fixed.index(0x80)
    free = (
        np.frombuffer(expected, form),
        np.frombuffer(fixed, form),
        slice(first, first - first % (width * count) + width * count, width),
    )
    begin = run.position - 1 + skipped * run.stride
    return shape, form, begin, (distance, run.stride), expected, free


def _heads_of(value_size: int, start: int, stop: int) -> tuple[int, bytes]:
    known = _heads.get((value_size, start))
    if known is not None and len(known[1]) >= (stop - start) * known[0]:
        return known
    heads = template(-1, value_size, stop)
    known = len(heads[start]), b"".join(heads[start:stop])
    if len(_heads) >= HEADS_MAX:
        _heads.clear()
    _heads[value_size, start] = known
    return known


def _plain_value_size(data: bytes | memoryview, count: int) -> int:
    """The size of each value, -1 if the batch cannot be what this file is for.

    It looks at the first record and at the size of all only.
    """
    try:
        _, body = read_varint(data, 0, MAX_VARINT_SIZE)
        # attributes, timestamp delta, offset delta, key size
        if data[body : body + 4] != b"\0\0\0\1":
            return -1
        value_size, _ = read_varint(data, body + 4, MAX_VARINT_SIZE)
    except (IndexError, Malformed):
        return -1
    if value_size < 0 or uniform_size(-1, value_size, count) != len(data):
        return -1
    return value_size
