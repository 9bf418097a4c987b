"""Telling a killed process's torn write from rot, behind the last good batch.

While the machine runs on, no written byte is missing. The kernel copies a write page by page, in
order, and a kill ends it between two pages. So the file holds the beginning of the write:

    | good batches | the first k bytes of a batch | zeros that were reserved, or the file's end |

A bad batch that was written to its end is rot. There are two signs that its end is not reserved
zeros: the checksum fits the bytes up to the last nonzero one, if only its head has rotted; or the
last bytes, located by its length, are not all 0. A few zeros are normal: most batches end with one,
LZ4 batches with four, and a small integer in a value adds seven. They count as reserved zeros only
if a page begins among them. A rotten batch whose value ends with more zeros looks torn.
"""

from __future__ import annotations

from wire.records.crc32c import crc32c
from wire.records.format import ATTRIBUTES_POSITION, CRC_POSITION, LENGTH_MIN, LOG_OVERHEAD

_STEP_SIZE = 1 << 20
_PAGE_SIZE = 4096
_LAST_ZEROS_MAX = 16
"""A bad batch that ends with more zeros than this counts as torn."""


def is_torn(view: memoryview, position: int) -> bool:
    """Whether the bytes from `position` on can be a torn write of a killed process.

    `view` is the whole file. Requires: no good batch begins at or after `position`.
    """
    tail = view[position:]
    content = content_size(tail)
    if _has_right_checksum(tail, content):
        return False
    if content < LOG_OVERHEAD:
        return True
    size = int.from_bytes(tail[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if size < LOG_OVERHEAD + LENGTH_MIN:
        return True  # no batch has this length: these are stray bytes among reserved zeros
    if size > len(tail) or content <= size - _LAST_ZEROS_MAX:
        return True
    next_page = (position + content + _PAGE_SIZE - 1) // _PAGE_SIZE * _PAGE_SIZE
    return next_page < position + size


def content_size(view: memoryview) -> int:
    """Return the size of `view` without the zeros at its end."""
    end = len(view)
    while end:
        start = max(0, end - _STEP_SIZE)
        found = len(bytes(view[start:end]).rstrip(b"\0"))
        if found:
            return start + found
        end = start
    return 0


def _has_right_checksum(tail: memoryview, content: int) -> bool:
    """Whether the checksum fits a batch that ends at byte `content`, or a few zero bytes later.

    The length in the batch's head is not used, because the head may have rotted.
    """
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
