"""Polled columns as an Arrow record batch. Needs pyarrow: `pip install embedlog[arrow]`.

Nothing is copied but values of up to 12 bytes, which Arrow's view layout holds inline. A view is

    size       int32
    up to 12   the bytes themselves, then zeros
    longer     4 bytes of prefix, int32 index of the data buffer (0), int32 position in it

and the data buffer is the polled batch: of an uncompressed one the log itself, which stays readable
for as long as the Arrow array lives, whatever retention does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Columns(Protocol):
        """`PolledColumns`, as far as Arrow goes."""

        @property
        def buffer(self) -> memoryview: ...
        @property
        def offsets(self) -> Any: ...
        @property
        def timestamps(self) -> Any: ...
        @property
        def key_positions(self) -> Any: ...
        @property
        def key_sizes(self) -> Any: ...
        @property
        def value_positions(self) -> Any: ...
        @property
        def value_sizes(self) -> Any: ...
        def __len__(self) -> int: ...


_INLINE_SIZE_MAX = 12
_PREFIX_SIZE = 4
_VIEW_SIZE = 16


def record_batch(polled: Columns, *, copy: bool) -> Any:
    """A `pyarrow.RecordBatch` of offset, timestamp, key and value."""
    import pyarrow as pa

    keys = _views(polled.buffer, polled.key_positions, polled.key_sizes)
    values = _views(polled.buffer, polled.value_positions, polled.value_sizes)
    if copy:
        keys, values = keys.cast(pa.binary()), values.cast(pa.binary())
    stamps = pa.Array.from_buffers(
        pa.timestamp("ms", tz="UTC"), len(polled), [None, pa.py_buffer(polled.timestamps)]
    )
    return pa.RecordBatch.from_arrays(
        [pa.array(polled.offsets), stamps, keys, values],
        names=["offset", "timestamp", "key", "value"],
    )


def _views(buffer: memoryview, positions: Any, sizes: Any) -> Any:
    """A binary_view array over `buffer`; negative sizes are nulls."""
    import numpy as np
    import pyarrow as pa

    count = len(sizes)
    is_there = sizes >= 0
    views = np.zeros((count, _VIEW_SIZE), np.uint8)
    words = views.view("<i4")
    words[:, 0] = np.maximum(sizes, 0)
    source = np.frombuffer(buffer, np.uint8)
    if source.size and count:
        steps = np.arange(_INLINE_SIZE_MAX)
        # Bytes past a value are cut off below, so that it does not matter which ones they are.
        heads = source[np.clip(positions[:, None] + steps, 0, source.size - 1)]
        heads[steps >= sizes[:, None]] = 0
        is_inline = sizes <= _INLINE_SIZE_MAX
        views[is_inline, _PREFIX_SIZE:] = heads[is_inline]
        is_long = ~is_inline
        views[is_long, _PREFIX_SIZE : 2 * _PREFIX_SIZE] = heads[is_long, :_PREFIX_SIZE]
        words[is_long, 3] = positions[is_long]
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(
        pa.binary_view(), count, [validity, pa.py_buffer(views), pa.py_buffer(buffer)]
    )
