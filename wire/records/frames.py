"""Batches of a shape seen before: all that stands around keys and values, compared at once.

Real clients write batches that look alike: as many bytes, as many records, keys and values of one
length; only the timestamps differ. Once the plain loop has proved one of them valid, a `Frame`
keeps the bytes around its keys and values, and one call of struct cuts the same places out of the
next batch. If the bytes are equal, the plain loop would read there what it read before but for the
timestamps, which the call returns too. So a frame is exact, as `layout` is, and costs less
where batches are small.

    before                middle                      after                 before
    [length, attributes]  delta  [offset, key length] key  [value length] value  [0, length ...
"""

from __future__ import annotations

from struct import Struct

from wire.records.plain import parse_records
from wire.records.varint import MAX_VARINT_SIZE, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.plain import Fields
    from wire.records.record import Buffer

COUNT_MAX = 128
FRAMES_MAX = 128
_EVEN_BYTES = bytes(range(0, 256, 2))
# By size of the data and number of records. None when such data was seen only once.
_frames: dict[tuple[int, int], Frame | None] = {}


class Frame:
    """What stands around the keys and values of batches of one shape.

    `first_null_key_index` is the first record without a key, -1 when all have one.
    """

    __slots__ = ("_around", "_step", "_unpack", "first_null_key_index")

    def __init__(
        self,
        form: Struct,
        around: list[tuple[int, tuple[bytes, ...]]],
        step: int,
        first_null_key_index: int,
    ) -> None:
        self._unpack = form.unpack
        self._around = around
        """What the fields must be from a first one on, each `_step` after the one before."""
        self._step = step
        self.first_null_key_index = first_null_key_index

    def timestamp_deltas(self, data: Buffer) -> bytes | None:
        """The timestamp deltas, doubled, or None when `data` is no batch of this shape.

        None also where a delta is negative or takes more than a byte: such batches are unusual.
        """
        fields = self._unpack(data)
        step = self._step
        for start, expected in self._around:
            if fields[start::step] != expected:
                return None
        deltas = bytes(fields[1::step])
        return deltas if deltas.isascii() and not deltas.translate(None, _EVEN_BYTES) else None


def find_frame(size: int, count: int) -> Frame | None:
    """The frame of batches of `count` records in `size` bytes, if there is one."""
    return _frames.get((size, count))


def remember(data: bytes | memoryview, count: int) -> None:
    """Take note of a valid batch that no frame fitted; of the second of a kind one is made."""
    key = len(data), count
    if count > COUNT_MAX:
        return
    if len(_frames) >= FRAMES_MAX and key not in _frames:
        _frames.clear()
    is_new = _frames.get(key, key) is not None
    _frames[key] = None if is_new else _frame(data, parse_records(data, count))


def _frame(data: bytes | memoryview, records: list[Fields]) -> Frame | None:
    """The frame of a valid batch; None if something about it is unusual."""
    has_keys = any(key_size > 0 for _, _, _, key_size, *_ in records)
    form = [">"]
    before: list[bytes] = []
    middle: list[bytes] = []
    after: list[bytes] = []
    piece_start = start = 0
    for index, record in enumerate(records):
        _, offset_delta, key_at, key_size, value_at, value_size, headers, _ = record
        _, body = read_varint(data, start, MAX_VARINT_SIZE)
        delta_at = body + 1
        key_size = max(key_size, 0)
        value_end = value_at + max(value_size, 0)
        if offset_delta != index or headers or data[value_end] or data[delta_at] > 0x7F:
            return None
        middle_end = key_at if has_keys else value_at
        before.append(bytes(data[piece_start:delta_at]))
        middle.append(bytes(data[delta_at + 1 : middle_end]))
        form.append(f"{len(before[-1])}sB{len(middle[-1])}s")
        if has_keys:
            after.append(bytes(data[key_at + key_size : value_at]))
            form.append(f"{key_size}x{len(after[-1])}s")
        form.append(f"{value_end - value_at}x")
        piece_start, start = value_end, value_end + 1
    before.append(b"\0")
    form.append("1s")
    around = [(0, tuple(before)), (2, tuple(middle))]
    if has_keys:
        around.append((3, tuple(after)))
    null_keys = (index for index, record in enumerate(records) if record[3] < 0)
    return Frame(Struct("".join(form)), around, len(around) + 1, next(null_keys, -1))
