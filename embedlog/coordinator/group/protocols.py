"""`SupportedProtocols`: the protocols that members of a group support, kept as counts.

To add or remove a member costs time in proportion to its protocols, not to the size of the group.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SupportedProtocols:
    """Counts the members that support each protocol. Requires: the shard's lock."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.member_count = 0

    def add(self, names: Iterable[str]) -> None:
        """Add a member that supports `names`; a repeated name counts once."""
        self.member_count += 1
        for name in dict.fromkeys(names):
            self._counts[name] = self._counts.get(name, 0) + 1

    def remove(self, names: Iterable[str]) -> None:
        """Remove a member; `names` must be the names that `add` got for it."""
        self.member_count -= 1
        for name in dict.fromkeys(names):
            count = self._counts[name] - 1
            if count:
                self._counts[name] = count
            else:
                del self._counts[name]

    def common(self) -> set[str]:
        """Return the protocols that all members support; none without members."""
        return {name for name, count in self._counts.items() if count == self.member_count}

    def has_common(self, names: Iterable[str]) -> bool:
        """Return whether all members support the same one of `names`. True without members."""
        counts, member_count = self._counts, self.member_count
        return any(counts.get(name, 0) == member_count for name in names)
