"""How far a segment's file reaches behind its content, so that an append seldom has to extend it.

Reserved room costs a system call now and then, and the disk is asked for larger extents. Where
files are in memory, what is reserved is taken: so it is never more than the content again, and of a
large one a quarter. The first block of the file system is taken as a whole, and no more while the
content fits: to give back what 10,000 short logs had reserved took a second. Room that was written,
with zeros, makes a sync cheap: it has only data to bring to the disk, no sizes and extents.
"""

from __future__ import annotations

from embedlog.runtime.files import write_fully

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import File

_BLOCK = 4 << 10
_FIRST_STEP = 64 << 10
_DOUBLED_SIZE_MAX = 1 << 20
_LARGEST_STEP = 16 << 20
_LARGEST_ZEROED_STEP = 1 << 20
_ZEROS = bytes(_FIRST_STEP)


def preallocate(file: File, needed: int) -> int:
    """Reserve `needed` bytes and some to spare; how many there are then."""
    step = max(needed // 4, min(needed, _DOUBLED_SIZE_MAX), _FIRST_STEP)
    wanted = _BLOCK if needed <= _BLOCK else needed + min(step, _LARGEST_STEP)
    try:
        file.reserve(wanted)
    except OSError:
        # No room for the step; whether there is any for the batch, its write will tell.
        return needed
    return wanted


def preallocate_zeros(file: File, present: int, needed: int) -> int:
    """Write zeros behind the `present` bytes, up to `needed` and some to spare; where they end.

    Raises:
        OSError: the disk refuses.
    """
    if needed <= _BLOCK:
        return present + write_fully(file.write, [_ZEROS[: _BLOCK - present]], present)
    wanted = needed + min(max(needed, _FIRST_STEP), _LARGEST_ZEROED_STEP)
    position = present
    while position < wanted:
        count = min((wanted - position + _FIRST_STEP - 1) // _FIRST_STEP, 64)
        position += write_fully(file.write, [_ZEROS] * count, position)
    return position
