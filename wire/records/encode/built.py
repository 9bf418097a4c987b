"""A batch that this process has built, so that a broker need not check it.

A broker must check the bytes of a batch from outside: checksum, structure, every record. It can
trust a `BuiltBatch`, because its constructor encodes the records itself and takes no encoded bytes.
Inside the process it takes the place of the bytes; `bytes(batch)` returns them for the network. A
log writes it without another check, like the result of `storage.validation`.
"""

from __future__ import annotations

from wire.records.crc32c import crc32c
from wire.records.encode.joins import encode_lone_value, encode_records, encode_uniform
from wire.records.format import CHECKED_HEAD, FRAME_HEAD, HEADER_SIZE, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_NO_PRODUCER = (-1, -1, -1)


class NotPlain(TypeError):
    """A column holds a value that is not `bytes` or None, or a timestamp that is not an `int`.

    The `len` of another buffer can differ from its size, and it can change during the encoding.
    """


class BuiltBatch:
    """A batch of magic 2, uncompressed and without record headers; immutable.

    Offsets begin at 0 without gaps, and timestamps have type CreateTime. A log writes the first
    part of the header itself, then `checked`. `bytes(batch)` equals the result of `build_batch` for
    the same records.

    >>> batch = BuiltBatch([b"a", None], timestamps=5)
    >>> (batch.count, batch.size, batch.max_timestamp, batch.first_null_key_index)
    (2, 76, 5, 0)
    """

    __slots__ = (
        "base_sequence",
        "checked",
        "count",
        "crc",
        "first_null_key_index",
        "last_offset_delta",
        "max_timestamp",
        "min_timestamp",
        "producer_epoch",
        "producer_id",
        "size",
    )

    attributes = 0
    is_transactional = False
    is_control = False
    log_append_time_ms = -1
    """No append time: the producer set the timestamps."""

    def __init__(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: int | Sequence[int],
        producer: tuple[int, int, int] = _NO_PRODUCER,
        sizes: Sequence[int] = (),
    ) -> None:
        """Encode at least one record; columns are as `build_batch` takes them.

        `producer` is (id, epoch, sequence of the first record). `sizes` are the lengths of the
        values, if the caller knows them.

        Raises:
            NotPlain: a column holds other types; `build_batch` may accept them.
        """
        count = len(values)
        self.first_null_key_index = 0
        deltas: list[int] | None = None
        if isinstance(timestamps, int):
            base = latest = earliest = timestamps
        else:
            stamps = _plain(timestamps, int)
            assert len(stamps) == count, (len(stamps), count)
            base, latest, earliest = stamps[0], max(stamps), min(stamps)
            if latest != earliest:
                deltas = [stamp - base for stamp in stamps]
        if count == 1 and keys is None:
            value = values[0]
            if type(value) is not bytes and value is not None:
                raise NotPlain
            body = encode_lone_value(value)
        else:
            is_bare = keys is None and deltas is None
            if is_bare and (uniform := _encode_uniform(values, sizes)) is not None:
                body = uniform
            else:
                # Copy the lists first, because another thread may change them meanwhile.
                values = _plain(values, bytes, type(None))
                assert len(values) == count > 0, (len(values), count)
                if keys is not None:
                    keys = _plain(keys, bytes, type(None))
                    assert len(keys) == count, (len(keys), count)
                    self.first_null_key_index = keys.index(None) if None in keys else -1
                body = b"".join(encode_records(values, keys, deltas, None))
        head = CHECKED_HEAD.pack(self.attributes, count - 1, base, latest, *producer, count)
        self.producer_id, self.producer_epoch, self.base_sequence = producer
        self.size = HEADER_SIZE + len(body)
        self.crc = crc32c(body, crc32c(head, 0))
        self.checked = head, body
        """The bytes that the checksum covers, in two pieces."""
        self.count = count
        self.last_offset_delta = count - 1
        self.max_timestamp = latest
        self.min_timestamp = earliest

    def __len__(self) -> int:
        return self.size

    def __bytes__(self) -> bytes:
        frame_head = FRAME_HEAD.pack(0, self.size - LOG_OVERHEAD, -1, 2, self.crc)
        return b"".join([frame_head, *self.checked])

    def __repr__(self) -> str:
        return f"<BuiltBatch of {self.count} records, {self.size} bytes>"


def _encode_uniform(values: Sequence[Any], sizes: Sequence[int]) -> bytes | None:
    """Return the records section if all values have one length, else None.

    The size of the result shows whether all values are bytes: if the `len` of a value is below its
    size in bytes, the result is too long, and no Python type has a `len` above its size. Checking
    the types instead would take a fifth of the whole time.
    """
    try:
        sizes = sizes or list(map(len, values))
        size = sizes[0]
        return encode_uniform(values, size) if sizes.count(size) == len(values) else None
    except (TypeError, ValueError):  # a value is not bytes, or the number of values has changed
        return None


def _plain(column: Sequence[Any], *allowed: type) -> list[Any]:
    """Return a copy of the column.

    Raises:
        NotPlain: an item has none of the `allowed` types. (The first one should be the usual type.)
    """
    items = list(column)
    types = list(map(type, items))
    if types.count(allowed[0]) != len(types) and not set(allowed).issuperset(types):
        raise NotPlain
    return items
