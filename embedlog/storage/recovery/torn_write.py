"""What a killed process can leave behind the last good batch: telling a torn write from rot.

While the machine runs on, nothing that was written is missing. A kill ends a write between two of
the pages that the kernel copies it to, in order, so that the file holds a beginning of it:

    | good batches | the first k bytes of a batch | zeros that were reserved, or the file's end |

A batch that is bad and was written to its end is rot. Its end is not reserved zeros: the checksum
fits the bytes up to the last one that is not 0, if only its head has rotted; or its last bytes, as
its length tells where they are, are not all 0. A few are: one is the end of most batches, four of
those of LZ4, and a small integer in a value adds seven. These are taken for reserved ones only
where a page begins among them. A value that ends with more zeros makes a rotten batch look torn.
"""

from __future__ import annotations

from wire.records.crc32c import crc32c
from wire.records.format import ATTRIBUTES_POSITION, CRC_POSITION, LENGTH_MIN, LOG_OVERHEAD

_STEP_SIZE = 1 << 20
_PAGE_SIZE = 4096
_LAST_ZEROS_MAX = 16
"""More zeros at the end of a batch than these are taken for reserved ones."""


def is_torn(view: memoryview, position: int) -> bool:
    """Whether a killed process can have left what follows the good batches of a file.

    `view` is of the whole file. Requires: no good batch begins at or behind `position`.
    """
    tail = view[position:]
    content = content_size(tail)
    if _has_right_checksum(tail, content):
        return False
    if content < LOG_OVERHEAD:
        return True
    size = int.from_bytes(tail[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if size < LOG_OVERHEAD + LENGTH_MIN:
        return True  # no batch begins like that: a stray byte in what was reserved
    if size > len(tail) or content <= size - _LAST_ZEROS_MAX:
        return True
    next_page = (position + content + _PAGE_SIZE - 1) // _PAGE_SIZE * _PAGE_SIZE
    return next_page < position + size


def content_size(view: memoryview) -> int:
    """Bytes up to the last one that is not 0."""
    end = len(view)
    while end:
        start = max(0, end - _STEP_SIZE)
        found = len(bytes(view[start:end]).rstrip(b"\0"))
        if found:
            return start + found
        end = start
    return 0


def _has_right_checksum(tail: memoryview, content: int) -> bool:
    """Whether a batch ends with the content, or few zeros later, whatever its head says."""
    if content <= ATTRIBUTES_POSITION:
        return False
    stored = int.from_bytes(tail[CRC_POSITION:ATTRIBUTES_POSITION], "big")
    computed = crc32c(tail[ATTRIBUTES_POSITION:content])
    end = min(len(tail), content + _LAST_ZEROS_MAX)
    for position in range(content, end + 1):
        if computed == stored:
            return True
        computed = crc32c(tail[position : position + 1], computed)
    return False
