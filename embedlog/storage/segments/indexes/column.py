"""A growing column of 64-bit integers: a list while it is short, an array once it is long.

A list costs 40 bytes an entry and an array 8; but importing `array` costs as much as opening a
log, and most logs are small.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    Column = list[int] | array[int]
else:
    Column = None

LIST_LENGTH_MAX = 4096


def compact(column: Column) -> Column:
    """Return the same column; an array if `column` is a list that has become long.

    The list itself is not changed, because readers may use it.
    """
    if len(column) <= LIST_LENGTH_MAX or type(column) is not list:
        return column
    from array import array

    return array("q", column)
