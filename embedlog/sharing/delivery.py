"""The delivery states of a record in a share group, and every move between them.

    AVAILABLE --acquire--> ACQUIRED --accept--> ACKNOWLEDGED
        ^                     |  |
        +------release--------+  +--reject, gap, exhaust--> ARCHIVED
                              |                                ^
                              +--bury--> ARCHIVING --buried----+

ACKNOWLEDGED and ARCHIVED are terminal.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
"""A dead letter is being written."""
ARCHIVED: Final = 4

TERMINAL: Final = (ACKNOWLEDGED, ARCHIVED)


class Cause:
    """Why a record moves. The first five are the types of acknowledgements on the wire."""

    GAP = 0
    """There is no record at the offset."""
    ACCEPT = 1
    RELEASE = 2
    """The owner gives it back, its session ends, or its lock expires."""
    REJECT = 3
    RENEW = 4
    """The lock begins anew."""
    ACQUIRE = 5
    EXHAUST = 6
    """It comes back, and has been delivered as often as the group allows."""
    BURY = 7
    """It is given up, and the group has a dead letter topic."""
    BURIED = 8
    """Its dead letter is written, or cannot be written."""
    VANISH = 9
    """It is gone: below the log start, compacted, or of an aborted transaction."""


MOVES: dict[tuple[int, int], int] = {
    (AVAILABLE, Cause.ACQUIRE): ACQUIRED,
    (AVAILABLE, Cause.VANISH): ARCHIVED,
    (ACQUIRED, Cause.ACCEPT): ACKNOWLEDGED,
    (ACQUIRED, Cause.RELEASE): AVAILABLE,
    (ACQUIRED, Cause.REJECT): ARCHIVED,
    (ACQUIRED, Cause.GAP): ARCHIVED,
    (ACQUIRED, Cause.RENEW): ACQUIRED,
    (ACQUIRED, Cause.EXHAUST): ARCHIVED,
    (ACQUIRED, Cause.BURY): ARCHIVING,
    (ACQUIRED, Cause.VANISH): ARCHIVED,
    (ARCHIVING, Cause.BURIED): ARCHIVED,
}
"""(state, cause) -> the next state. Nothing else can happen to a record."""


class Rules:
    """The rules of one group for records that come back, as they are at this moment."""

    __slots__ = ("buries", "delivery_limit")

    def __init__(self, delivery_limit: int, *, buries: bool = False) -> None:
        self.delivery_limit = delivery_limit
        self.buries = buries
        """Whether the group has a dead letter topic."""

    def refine(self, cause: int, delivery_count: int) -> int:
        """Return the true cause of a move: a released record may be exhausted, or buried."""
        if cause == Cause.RELEASE and delivery_count >= self.delivery_limit:
            return Cause.BURY if self.buries else Cause.EXHAUST
        if cause == Cause.REJECT and self.buries:
            return Cause.BURY
        return cause
