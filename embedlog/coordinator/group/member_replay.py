"""`MemberReplay`: applies the records of members and targets, which all assigned groups have.

Each protocol has record types of its own with the same parts; its module `member_records` reads
them.
"""

from __future__ import annotations

from embedlog.common import Generic
from embedlog.coordinator.group.modern_group import FIRST_EPOCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from embedlog.coordinator.group.modern_group import ModernGroup

    M = TypeVar("M")
    A = TypeVar("A")
else:
    M = A = None


class MemberReplay(Generic[M, A]):
    """Applies records of members `M` with targets `A`; a `value` of None is a tombstone."""

    def __init__(
        self,
        make: Callable[[str], M],
        *,
        with_metadata: Callable[[M, Any], M],
        with_assignment: Callable[[M, Any], M],
        read_target: Callable[[Any], A],
    ) -> None:
        """`make(member_id)` returns a member without facts. The others read the record's value."""
        self._make = make
        self._with_metadata = with_metadata
        self._with_assignment = with_assignment
        self._read_target = read_target

    def member(self, group: ModernGroup[M, A], key: Any, value: Any) -> None:
        if value is None:
            group.drop_member(key.member_id)
            return
        before = group.members.get(key.member_id) or self._make(key.member_id)
        group.put_member(self._with_metadata(before, value))

    def assignment(self, group: ModernGroup[M, A], key: Any, value: Any) -> None:
        before = group.members.get(key.member_id)
        if before is None:
            if value is None:
                return
            before = self._make(key.member_id)
        group.put_member(self._with_assignment(before, value))

    def target(self, group: ModernGroup[M, A], key: Any, value: Any) -> None:
        if value is None:
            group.target.pop(key.member_id, None)
        else:
            group.target[key.member_id] = self._read_target(value)

    @staticmethod
    def target_epoch(group: ModernGroup[M, A], _key: Any, value: Any) -> None:
        group.target_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        group.target_made_ms = 0 if value is None else value.assignment_timestamp
