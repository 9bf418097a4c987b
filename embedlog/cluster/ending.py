"""End a broker completely, also if Ctrl-C comes in the middle."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def completely(end: Callable[[], None]) -> None:
    """Call `end`, and once more if Ctrl-C interrupts it.

    A broker that has ended only in part would keep the locks of its directories, and could not be
    started again. Requires: `end` may be called twice.
    """
    try:
        end()
    except (KeyboardInterrupt, SystemExit):
        end()
        raise
