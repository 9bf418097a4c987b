"""Room behind the content of a segment's file, so that few appends have to extend the file.

Reserving in steps takes few system calls, and the file system can give larger extents. Reserved
room of a file in memory takes up memory, so the room is at most as large as the content, and for a
large file a quarter of it. While the content fits into the file system's first block, only that
block is reserved: giving back the reserved room of 10,000 short logs took a second. Room that was
written with zeros makes a sync cheap: only data has to reach the disk, not sizes and extents.
"""

from __future__ import annotations

from errno import EDQUOT, EFBIG, ENOSPC

from embedlog.runtime.files import File, write_fully

_BLOCK = 4 << 10
_FIRST_STEP = 64 << 10
_DOUBLED_SIZE_MAX = 1 << 20
_LARGEST_STEP = 16 << 20
_LARGEST_ZEROED_STEP = 1 << 20
_ZEROS = bytes(_FIRST_STEP)
_NO_ROOM = (ENOSPC, EDQUOT, EFBIG)


def preallocate(file: File, needed: int) -> int:
    """Reserve `needed` bytes and some to spare; return how many are reserved."""
    step = max(needed // 4, min(needed, _DOUBLED_SIZE_MAX), _FIRST_STEP)
    wanted = _BLOCK if needed <= _BLOCK else needed + min(step, _LARGEST_STEP)
    try:
        file.reserve(wanted)
    except OSError:
        # The disk has no room to spare. The write of the batch will show whether the batch fits.
        return needed
    return wanted


def preallocate_zeros(file: File, present: int, needed: int) -> int:
    """Write zeros behind the `present` bytes, up to `needed` and some more; return their end.

    If the disk has no room for them, write none and return `needed`: the write of the batch will
    show whether the batch fits.
    """
    try:
        return _write_zeros(file, present, needed)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
    if file.size() > present:
        file.truncate(present)
    return needed


def _write_zeros(file: File, present: int, needed: int) -> int:
    if needed <= _BLOCK:
        return present + write_fully(file.write, [_ZEROS[: _BLOCK - present]], present)
    wanted = needed + min(max(needed, _FIRST_STEP), _LARGEST_ZEROED_STEP)
    position = present
    while position < wanted:
        count = min((wanted - position + _FIRST_STEP - 1) // _FIRST_STEP, 64)
        position += write_fully(file.write, [_ZEROS] * count, position)
    return position
