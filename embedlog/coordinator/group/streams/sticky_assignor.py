"""The "sticky" assignor of streams groups: it moves few tasks, and spreads them evenly.

    active    1. a task stays with its member while that member is below its quota
              2. then it goes to a member that has a copy of its state, and is below its quota
              3. the rest goes, by subtopology and partition, to the process with the least load
    standby   of stateful subtopologies only, on processes that do not have the task yet:
              1. the former active member   2. a former standby   3. the process with the least load

The load of a process is the number of its tasks per member. The quota of a member is an even share
of the tasks; members that have reached it leave the count, and the quota of the others follows.
With too few processes there are fewer standby copies than wanted. Among equals the first by name
wins; in Kafka a hash map decides.
"""

from __future__ import annotations

from _heapq import heapify, heappop, heappush
from collections.abc import Mapping

from embedlog.common import Value
from embedlog.coordinator.group.streams.processes import Process
from embedlog.coordinator.group.streams.tasks import Numbers, Tasks
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from embedlog.coordinator.group.streams.processes import Task

    Heap = list[tuple[float, str]]

NAME = "sticky"


class MemberSpec(Value):
    """A member as the assignor sees it: its process and its present tasks."""

    process_id: str
    active: Numbers = {}
    standby: Numbers = {}
    offsets: Mapping[Task, int] = {}
    """Task -> sum of the offsets in the member's copy of its state, as the member reports it."""


class SubtopologySpec(Value):
    """A subtopology as the assignor sees it."""

    task_count: int
    is_stateful: bool = False


def check_configured(names: Sequence[str]) -> None:
    """Raise ConfigError unless group.streams.assignors names this assignor first, if any."""
    if names and names[0] != NAME:
        raise ConfigError(f"group.streams.assignors: {', '.join(names)!r}; it has to be {NAME!r}")


def assign(
    members: Mapping[str, MemberSpec],
    subtopologies: Mapping[str, SubtopologySpec],
    *,
    standby_count: int = 0,
) -> dict[str, Tasks]:
    """Return the tasks of each member. A pure function; O(tasks log processes).

    `standby_count` is the wanted number of standby copies of each stateful task.
    """
    if not members:
        return {}
    assignment = _Assignment(members, subtopologies, standby_count)
    assignment.assign_active(
        [(name, n) for name, each in subtopologies.items() for n in range(each.task_count)]
    )
    if standby_count:
        stateful = {name: each for name, each in subtopologies.items() if each.is_stateful}
        assignment.assign_standby(
            [(name, n) for name, each in stateful.items() for n in range(each.task_count)]
        )
    return assignment.found()


class _Quota:
    """An even share of tasks for members that have not reached it yet."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self._share()

    def _share(self) -> None:
        self.size = -(-self._task_count // self._member_count) if self._member_count else 0

    def note(self, count: int) -> None:
        """Note that a member has that number of tasks."""
        if count == self.size:
            self._member_count -= 1
            self._task_count -= count
            self._share()


class _Assignment:
    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, SubtopologySpec],
        standby_count: int,
    ) -> None:
        self._members = members
        self._standby_count = standby_count
        self._processes: dict[str, Process] = {}
        self._former_active: dict[Task, str] = {}
        self._copies: dict[Task, list[str]] = {}
        """Task -> members with a copy of its state, the best one first."""
        ranked: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id, spec in sorted(members.items()):
            process = self._processes.setdefault(spec.process_id, Process())
            process.add_member(member_id)
            for task in _each(spec.active):
                self._former_active[task] = member_id
            for task in _each(spec.standby):
                offset = spec.offsets.get(task, 0)
                ranked.setdefault(task, []).append((False, -offset, member_id))
            for task, offset in spec.offsets.items():
                if task[1] not in spec.standby.get(task[0], ()):
                    ranked.setdefault(task, []).append((True, -offset, member_id))
        for task, rows in ranked.items():
            self._copies[task] = [member_id for _, _, member_id in sorted(rows)]
        active = sum(each.task_count for each in subtopologies.values())
        standby = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + standby * standby_count, len(members))

    def assign_active(self, tasks: Iterable[Task]) -> None:
        by_partition = sorted(tasks, key=lambda task: (task[1], task[0]))
        left = [
            task
            for task in by_partition
            if not self._keep_active(task, self._former_active.get(task))
        ]
        left = [
            task
            for task in left
            if not self._keep_active(task, self._best_copy(task, is_standby=False))
        ]
        heap = self._by_load()
        for task in sorted(left):
            _, process_id = heappop(heap)
            process = self._processes[process_id]
            self._add_active(process.least_loaded(), task)
            heappush(heap, (process.load, process_id))

    def _keep_active(self, task: Task, member_id: str | None) -> bool:
        """Give the task to a member if that is below its quota; return whether it is."""
        if member_id is None or self._count(member_id) >= self._active_quota.size:
            return False
        self._add_active(member_id, task)
        return True

    def _add_active(self, member_id: str, task: Task) -> None:
        count = self._process(member_id).add(member_id, task, is_active=True)
        self._active_quota.note(count)
        self._quota.note(count)

    def assign_standby(self, tasks: Iterable[Task]) -> None:
        left = []
        for task in sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True):
            kept = 0
            while kept < self._standby_count and self._keep_standby(task):
                kept += 1
            left.append((task, self._standby_count - kept))
        heap = self._by_load()
        for task, count in sorted(left, reverse=True):
            for _ in range(count):
                if not self._add_to_least_loaded(heap, task):
                    break

    def _keep_standby(self, task: Task) -> bool:
        former = self._former_active.get(task)
        if former is not None and self._may_have_standby(former, task):
            self._add_standby(former, task)
            return True
        copy = self._best_copy(task, is_standby=True)
        if copy is not None and self._may_have_standby(copy, task):
            self._add_standby(copy, task)
            return True
        return False

    def _may_have_standby(self, member_id: str, task: Task) -> bool:
        return not self._process(member_id).has(task) and self._count(member_id) < self._quota.size

    def _add_standby(self, member_id: str, task: Task) -> None:
        self._quota.note(self._process(member_id).add(member_id, task, is_active=False))

    def _add_to_least_loaded(self, heap: Heap, task: Task) -> bool:
        """Give a standby copy to the process with the least load that has none of the task."""
        passed = []
        has_found = False
        while heap and not has_found:
            entry = heappop(heap)
            process = self._processes[entry[1]]
            if not process.has(task):
                self._add_standby(process.least_loaded(), task)
                entry = process.load, entry[1]
                has_found = True
            passed.append(entry)
        for entry in passed:
            heappush(heap, entry)
        return has_found

    def _best_copy(self, task: Task, *, is_standby: bool) -> str | None:
        """Return the member with a copy of the task's state; prefer one with less load.

        For a standby task, members whose process already has the task do not count.
        """
        best: str | None = None
        load = count = 0.0
        for member_id in self._copies.get(task, ()):
            process = self._process(member_id)
            if is_standby and process.has(task):
                continue
            own = process.load, process.counts[member_id]
            if best is None or (own[0] < load and own[1] < count):
                best = member_id
                load, count = own
        return best

    def _by_load(self) -> Heap:
        heap = [(process.load, process_id) for process_id, process in self._processes.items()]
        heapify(heap)
        return heap

    def _process(self, member_id: str) -> Process:
        return self._processes[self._members[member_id].process_id]

    def _count(self, member_id: str) -> int:
        return self._process(member_id).counts[member_id]

    def found(self) -> dict[str, Tasks]:
        """Return the assignment."""
        found = {}
        for member_id in self._members:
            process = self._process(member_id)
            found[member_id] = Tasks(
                active=_numbers(process.active.get(member_id, ())),
                standby=_numbers(process.standby.get(member_id, ())),
            )
        return found


def _each(numbers: Numbers) -> list[Task]:
    return [(name, number) for name, some in numbers.items() for number in some]


def _numbers(tasks: Iterable[Task]) -> Numbers:
    found: dict[str, set[int]] = {}
    for name, number in tasks:
        found.setdefault(name, set()).add(number)
    return {name: frozenset(numbers) for name, numbers in sorted(found.items())}
