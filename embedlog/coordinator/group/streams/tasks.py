"""Sets of tasks. A task is a subtopology and a partition number.

active      processes records; one member has it
standby     keeps a copy of the task's state
warm-up     builds a copy, for a task that will move; Kafka 4.4 assigns none
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from wire.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest

    class TaskIds(Protocol):
        """Tasks of one subtopology as messages have them."""

        subtopology_id: str
        partitions: list[int]


Numbers = Mapping[str, frozenset[int]]
"""Subtopology -> partition numbers; subtopologies without tasks have no entry."""

Epochs = Mapping[str, Mapping[int, int]]
"""Subtopology -> partition -> the member's epoch when it got the task."""

NO_NUMBERS: frozenset[int] = frozenset()
NO_EPOCHS: Mapping[int, int] = {}


class Tasks(Value):
    """Tasks of a target assignment, or the tasks that a member reports."""

    active: Numbers = {}
    standby: Numbers = {}
    warmup: Numbers = {}

    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


class HeldTasks(Value):
    """Tasks of a member, the active ones with the epochs in which it got them."""

    active: Epochs = {}
    standby: Numbers = {}
    warmup: Numbers = {}

    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def active_numbers(self) -> Numbers:
        return {name: frozenset(epochs) for name, epochs in self.active.items()}

    def overlaps(self, tasks: Tasks) -> bool:
        """Return whether one of these tasks is also in `tasks`, in the same role."""
        return (
            _overlap(self.active, tasks.active)
            or _overlap(self.standby, tasks.standby)
            or _overlap(self.warmup, tasks.warmup)
        )

    def includes(self, tasks: Tasks) -> bool:
        """Return whether all of `tasks` are among these tasks, in the same roles."""
        return (
            _includes(self.active, tasks.active)
            and _includes(self.standby, tasks.standby)
            and _includes(self.warmup, tasks.warmup)
        )


NO_TASKS = Tasks()
NOTHING_HELD = HeldTasks()


def numbers_of(rows: Iterable[TaskIds]) -> Numbers:
    """Return the tasks of a message. A subtopology without partitions keeps its empty entry."""
    return {row.subtopology_id: frozenset(row.partitions) for row in rows}


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks that a member reports; None if it reports nothing."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(numbers_of(active), numbers_of(standby), numbers_of(warmup))


def _overlap(held: Mapping[str, Mapping[int, int] | frozenset[int]], tasks: Numbers) -> bool:
    return any(
        not numbers.isdisjoint(held[name]) for name, numbers in tasks.items() if name in held
    )


def _includes(held: Mapping[str, Mapping[int, int] | frozenset[int]], tasks: Numbers) -> bool:
    # As in Kafka, a subtopology that is reported without partitions has to be known as well.
    return all(
        name in held and all(number in held[name] for number in numbers)
        for name, numbers in tasks.items()
    )
