"""`Fired`: one request at which a rule acts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.testing.faults.items import Item
    from embedlog.testing.interception import Call


class Fired:
    """One request at which a rule acts."""

    __slots__ = ("_hit", "call", "fires", "is_removed", "items", "owner")

    def __init__(
        self,
        owner: object,
        call: Call,
        items: Sequence[Item] | None,
        *,
        hit: Callable[[Call], None],
        fires: Callable[[], bool],
        is_removed: Callable[[], bool],
    ) -> None:
        self.owner = owner
        """The rule, for requests that wait."""
        self.call = call
        self.items = items
        """The matching items; None for the whole request."""
        self.fires = fires
        """Asks the trigger, for a late action."""
        self.is_removed = is_removed
        """Tells whether the rule was removed meanwhile."""
        self._hit = hit

    def hit(self) -> None:
        """Count the action, now that it has an effect."""
        self._hit(self.call)
