"""`TaskHolders`: the processes that have each task of a streams group.

A process has a task if one of its members has it assigned, or has yet to give it up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.coordinator.group.streams.member import StreamsMember

    Task = tuple[str, int]
    ByNumber = Mapping[str, Iterable[int]]


class TaskHolders:
    """Only replay changes it. Requires for every method: the lock of the group's shard."""

    def __init__(self) -> None:
        self._active: dict[Task, str] = {}
        self._standby: dict[Task, list[str]] = {}
        self._warmup: dict[Task, list[str]] = {}

    def add(self, member: StreamsMember) -> None:
        """Add a member's tasks. An active task then belongs to its process alone."""
        process_id = member.process_id
        for held in (member.assigned, member.revoking):
            self._active.update((task, process_id) for task in _each(held.active))
            for table, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in _each(tasks):
                    table.setdefault(task, []).append(process_id)

    def remove(self, member: StreamsMember) -> None:
        """Remove a member's tasks, unless another process took an active task over."""
        process_id = member.process_id
        for held in (member.assigned, member.revoking):
            for task in _each(held.active):
                if self._active.get(task) == process_id:
                    del self._active[task]
            for table, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in _each(tasks):
                    processes = table.get(task, [])
                    if process_id in processes:
                        processes.remove(process_id)
                    if not processes:
                        table.pop(task, None)

    def active(self, subtopology: str, partition: int) -> str | None:
        """Return the process that has the active task; None if no process has it."""
        return self._active.get((subtopology, partition))

    def has_standby(self, subtopology: str, partition: int, process_id: str) -> bool:
        return process_id in self._standby.get((subtopology, partition), ())

    def has_warmup(self, subtopology: str, partition: int, process_id: str) -> bool:
        return process_id in self._warmup.get((subtopology, partition), ())


def _each(tasks: ByNumber) -> Iterable[Task]:
    return [(name, number) for name, numbers in tasks.items() for number in numbers]
