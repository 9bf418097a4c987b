"""The one place where the consumer lets its user's callbacks fail without falling with them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attempt(callback: Callable[..., object], *arguments: object) -> Exception | None:
    """Call it; return what it raised, for the caller to raise when its own work is done."""
    try:
        callback(*arguments)
    except Exception as error:
        return error
    return None
