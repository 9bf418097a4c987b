"""Reading the columns of many small batches at once: the same record of every batch in one step.

With numpy a batch of a hundred records takes as long as one of ten thousand. Therefore the batches
are read side by side: a few array operations read the length of the first record of every batch,
then the length of every second record, and so on. A step takes about the same time for ten batches
as for a thousand.

    batch 0   | record 0 | record 1 | record 2 |
    batch 1   | record 0 | record 1 |
    batch 2   | record 0 | record 1 | record 2 | record 3 |
                step 0     step 1     step 2     step 3

Only the lengths must be read in steps. Once the starts of all records are known, each field is read
from all records at once. Headers are read in steps as well: the first header of every record, then
every second header, and so on.
"""

from __future__ import annotations

import numpy as np

from wire.records.decode.fields import Unusual, any_of, read_fields, varints
from wire.records.format import TimestampType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.records.decode.fields import FieldArrays, Int64s, Octets
    from wire.records.format import Batch
    from wire.records.record import Buffer

    Places = tuple[Int64s, Int64s, Int64s, Int64s]
    """(positions of keys, sizes of keys, positions of values, sizes of values)."""


class BatchesColumns:
    """The columns of several batches, like `RecordColumns`; positions point into `buffer`.

    `header_counts` has the number of headers of each record. The other columns of headers have an
    item for each header of all records, in order. They are empty unless headers were requested.
    """

    __slots__ = (
        "buffer",
        "header_counts",
        "header_key_positions",
        "header_key_sizes",
        "header_value_positions",
        "header_value_sizes",
        "key_positions",
        "key_sizes",
        "offsets",
        "timestamps",
        "value_positions",
        "value_sizes",
    )

    def __init__(
        self,
        buffer: bytes,
        offsets: Int64s,
        timestamps: Int64s,
        fields: FieldArrays,
        headers: tuple[Int64s, Places],
    ) -> None:
        self.buffer = buffer
        self.header_counts, header_places = headers
        self.header_key_positions, self.header_key_sizes = header_places[:2]
        self.header_value_positions, self.header_value_sizes = header_places[2:]
        self.offsets = offsets
        self.timestamps = timestamps
        self.key_positions, self.key_sizes = fields.key_positions, fields.key_sizes
        self.value_positions, self.value_sizes = fields.value_positions, fields.value_sizes

    def __len__(self) -> int:
        return len(self.offsets)


def columns_of_batches(
    batches: Sequence[Batch], payloads: Sequence[Buffer], *, with_headers: bool = False
) -> BatchesColumns | None:
    """Return the columns of `batches`; None if a batch is empty, malformed or unusual.

    `payloads` are the results of `Batch.payload`. Records with headers count as unusual unless
    `with_headers` is set. After None the caller reads the batches one by one with `Batch.columns`,
    which raises any error.
    """
    # With a byte 0 at the end, reading a malformed record stops there, and a later check fails.
    buffer = b"".join((*payloads, bytes(1)))
    sizes = np.array([len(each) for each in payloads], np.int64)
    counts = np.array([batch.record_count for batch in batches], np.int64)
    if (counts < 1).any():
        return None
    octets = np.frombuffer(buffer, np.uint8)
    ends = sizes.cumsum()
    headers = _Headers(int(counts.sum())) if with_headers else None
    try:
        fields = _read(octets, ends - sizes, ends, counts, headers)
    except Unusual:
        return None
    offsets = np.repeat([batch.base_offset for batch in batches], counts) + fields.offset_deltas
    stamps = np.repeat([batch.base_timestamp for batch in batches], counts) + fields.deltas
    if any(batch.timestamp_type == TimestampType.LOG_APPEND_TIME for batch in batches):
        latest = np.repeat([batch.max_timestamp for batch in batches], counts)
        of_log = [batch.timestamp_type == TimestampType.LOG_APPEND_TIME for batch in batches]
        stamps = np.where(np.repeat(of_log, counts), latest, stamps)
    found = headers or _Headers(0)
    return BatchesColumns(buffer, offsets, stamps, fields, found.columns())


class _Headers:
    """Collects the number and the places of the headers of all records."""

    def __init__(self, record_count: int) -> None:
        self._counts = np.zeros(record_count, np.int64)
        self._met: list[tuple[Int64s, ...]] = []

    def skip(self, octets: Octets, at: Int64s, counts: Int64s, records: Int64s) -> Int64s:
        """Read the headers of these records; return the position behind each record's headers.

        The headers of a record begin at its position in `at`; `counts` has their number.

        Raises:
            Unusual: a header is malformed.
        """
        self._counts[records] = counts
        going = np.flatnonzero(counts)
        number = 0
        while len(going):
            key_size, key_at = varints(octets, at[going])
            value_size, value_at = varints(octets, key_at + key_size)
            ends = value_at + np.maximum(value_size, 0)
            if (key_size < 0).any() or (ends > len(octets)).any():
                raise Unusual
            self._met.append((records[going], key_at, key_size, value_at, value_size))
            at[going] = ends
            number += 1
            going = going[counts[going] > number]
        return at

    def columns(self) -> tuple[Int64s, Places]:
        """Return the number of headers of each record, and the places of all headers in order."""
        if not self._met:
            nothing = np.empty(0, np.int64)
            return self._counts, (nothing, nothing, nothing, nothing)
        records, *fields = (np.concatenate(each) for each in zip(*self._met, strict=True))
        # A stable sort keeps the order of the headers of one record.
        order = np.argsort(records, kind="stable")
        key_at, key_size, value_at, value_size = (each[order] for each in fields)
        return self._counts, (key_at, key_size, value_at, value_size)


def _read(
    octets: Octets, starts: Int64s, ends: Int64s, counts: Int64s, headers: _Headers | None
) -> FieldArrays:
    """Return the fields of all records.

    Raises:
        Unusual: a record is malformed or unusual.
    """
    firsts, record_ends = _bounds(octets, starts, ends, counts)
    fields = read_fields(octets, firsts)
    at, header_counts = fields.headers_at, fields.header_counts
    if any_of(header_counts):
        if headers is None or (header_counts < 0).any():
            raise Unusual  # the plain loop must check the headers
        at = headers.skip(octets, at, header_counts, np.arange(len(at)))
    if any_of(at != record_ends):
        raise Unusual
    return fields


def _bounds(octets: Octets, starts: Int64s, ends: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the position of each record's attributes, and the end of each record.

    Raises:
        Unusual: the records of a batch do not fill it.
    """
    total = int(counts.sum())
    firsts, lasts = np.empty(total, np.int64), np.empty(total, np.int64)
    # Sort by falling record count, so that the batches with records left always come first.
    order = np.argsort(-counts, kind="stable")
    positions, limits, left = starts[order], ends[order], counts[order]
    slots = (counts.cumsum() - counts)[order]
    for step in range(int(left[0])):
        if left[-1] <= step:
            going = int(np.searchsorted(-left, -step, side="left"))
            if any_of(positions[going:] != limits[going:]):
                raise Unusual
            positions, limits, left = positions[:going], limits[:going], left[:going]
            slots = slots[:going]
        size, at = varints(octets, positions)
        firsts[slots + step] = at
        # No check here: reading the fields finds a record that ends before its start, and the check
        # of the batch's end finds a record that ends too late.
        lasts[slots + step] = positions = at + size
    if any_of(positions != limits):
        raise Unusual
    return firsts, lasts
