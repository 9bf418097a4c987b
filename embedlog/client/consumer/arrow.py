"""Polled columns as an Arrow record batch. Needs pyarrow: `pip install embedlog[arrow]`.

Only values of up to 12 bytes are copied: Arrow's view layout holds them inline. A view is

    size       int32
    up to 12   the bytes themselves, then zeros
    longer     4 bytes of prefix, int32 index of the data buffer (0), int32 position in it

The data buffer is the polled batch. An uncompressed batch is a mapping of the log, which stays
readable while the Arrow array lives, even if retention deletes the segment.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_INLINE_SIZE_MAX = 12
_PREFIX_SIZE = 4
_VIEW_SIZE = 16


def record_batch(offsets: Any, timestamps: Any, keys: Any, values: Any, *, copy: bool) -> Any:
    """Return the columns as a `pyarrow.RecordBatch`. `keys` and `values` are results of `views`."""
    import pyarrow as pa

    if copy:
        keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    stamps = pa.Array.from_buffers(
        pa.timestamp("ms", tz="UTC"), len(offsets), [None, pa.py_buffer(timestamps)]
    )
    return pa.RecordBatch.from_arrays(
        [pa.array(offsets), stamps, keys, values],
        names=["offset", "timestamp", "key", "value"],
    )


def views(buffer: memoryview, positions: Any, sizes: Any) -> Any:
    """Return a binary_view array over `buffer`; a negative size means null."""
    import numpy as np
    import pyarrow as pa

    count = len(sizes)
    is_there = sizes >= 0
    found = np.zeros((count, _VIEW_SIZE), np.uint8)
    words = found.view("<i4")
    words[:, 0] = np.maximum(sizes, 0)
    source = np.frombuffer(buffer, np.uint8)
    if source.size and count:
        steps = np.arange(_INLINE_SIZE_MAX)
        # `heads` has 12 bytes of each value; the bytes past the end of a shorter value become 0.
        heads = source[np.clip(positions[:, None] + steps, 0, source.size - 1)]
        heads[steps >= sizes[:, None]] = 0
        is_inline = sizes <= _INLINE_SIZE_MAX
        found[is_inline, _PREFIX_SIZE:] = heads[is_inline]
        is_long = ~is_inline
        found[is_long, _PREFIX_SIZE : 2 * _PREFIX_SIZE] = heads[is_long, :_PREFIX_SIZE]
        words[is_long, 3] = positions[is_long]
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(
        pa.binary_view(), count, [validity, pa.py_buffer(found), pa.py_buffer(buffer)]
    )
