"""`Process`: the members of one process of an application, and their tasks during an assignment."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Task = tuple[str, int]
    """Subtopology and partition."""


class Process:
    """One process. Its load is the number of its tasks per member."""

    __slots__ = ("_tasks", "active", "counts", "standby")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Member -> number of its tasks."""
        self.active: dict[str, list[Task]] = {}
        self.standby: dict[str, list[Task]] = {}
        self._tasks: set[Task] = set()

    @property
    def load(self) -> float:
        return len(self._tasks) / len(self.counts)

    def add_member(self, member_id: str) -> None:
        self.counts[member_id] = 0

    def has(self, task: Task) -> bool:
        return task in self._tasks

    def least_loaded(self) -> str:
        """Return the member with the fewest tasks; the first one of several."""
        return min(self.counts, key=self.counts.__getitem__)

    def add(self, member_id: str, task: Task, *, is_active: bool) -> int:
        """Give a task to a member; return the number of its tasks then."""
        table = self.active if is_active else self.standby
        table.setdefault(member_id, []).append(task)
        self._tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]
