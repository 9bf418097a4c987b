"""One step of a member from its tasks towards its target. A pure function, O(own tasks).

    revoke    tasks - target      the member must give these up first
    assign    target - tasks      the tasks that nobody holds who excludes the member

tasks to revoke that it owns      UNREVOKED_TASKS    epoch unchanged
else, a task is held elsewhere    UNRELEASED_TASKS   target epoch
else                              STABLE             target epoch

Only one process has an active task, and a process has a task in one role only: its members share
the state directories. A member that has a copy of a task's state keeps it until it gets the active
task, and gets a copy at once if it gives the active task up.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.tasks import (
    NO_EPOCHS,
    NO_NUMBERS,
    NOTHING_HELD,
    HeldTasks,
    Numbers,
    Tasks,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.coordinator.group.streams.task_holders import TaskHolders

    IsHeld = Callable[[str, int], bool]
    Changing = dict[str, set[int]]

_NONE: frozenset[int] = NO_NUMBERS


class TaskReconciliation(Value):
    """The facts that a member's step depends on."""

    target_epoch: int
    target: Tasks
    owned: Tasks | None
    """The tasks that the member reports; None if it reported nothing, and so may own any."""
    holders: TaskHolders

    def step(self, member: StreamsMember) -> StreamsMember:
        """Return the member's next state; the same object if nothing changes.

        Raises:
            FencedMemberEpoch: the member is in an unknown state and owns tasks.
        """
        if member.state == states.STABLE:
            if member.epoch == self.target_epoch:
                return member
            return self._next(member, member.epoch)
        if member.state == states.UNREVOKED_TASKS:
            if self._owns(member.revoking):
                return member
            return self._next(member, member.epoch + 1)
        if member.state == states.UNRELEASED_TASKS:
            return self._next(member, member.epoch)
        if self.owned is None or not self.owned.is_empty():
            raise errors.FencedMemberEpoch(
                "The streams group member is in a unknown state."
                " The member must abandon all its tasks and rejoin.",
            )
        return self._next(member, self.target_epoch)

    def _next(self, member: StreamsMember, epoch_until_revoked: int) -> StreamsMember:
        step = _Step(member, self.target, self.holders)
        revoking = step.revoking()
        must_revoke = not revoking.is_empty() and self._owns(revoking)
        step.keep_copies(all_of_them=must_revoke)
        if must_revoke:
            return member.replace(
                state=states.UNREVOKED_TASKS,
                epoch=epoch_until_revoked,
                previous_epoch=member.epoch,
                assigned=step.kept(),
                revoking=revoking,
            )
        return member.replace(
            state=states.UNRELEASED_TASKS if step.is_waiting else states.STABLE,
            epoch=self.target_epoch,
            previous_epoch=member.epoch,
            assigned=step.with_new(self.target_epoch),
            revoking=NOTHING_HELD,
        )

    def _owns(self, tasks: HeldTasks) -> bool:
        """Return whether the member may still own any of these tasks."""
        return self.owned is None or tasks.overlaps(self.owned)


class _Role:
    """The tasks of one role during a step: kept, to give up, and new."""

    def __init__(self, present: Numbers, target: Numbers, is_held: IsHeld) -> None:
        self.kept: Changing = {}
        self.gone: Changing = {}
        self.new: Changing = {}
        self.is_waiting = False
        for name in {**target, **present}:
            wanted, had = target.get(name, _NONE), present.get(name, _NONE)
            free = {number for number in wanted - had if not is_held(name, number)}
            self.is_waiting |= len(free) < len(wanted - had)
            for table, numbers in (
                (self.kept, wanted & had),
                (self.gone, had - wanted),
                (self.new, free),
            ):
                if numbers:
                    table[name] = set(numbers)


class _Step:
    def __init__(self, member: StreamsMember, target: Tasks, holders: TaskHolders) -> None:
        self._member = member
        self._target = target
        self._active = member.assigned.active_numbers()
        standby, warmup = member.assigned.standby, member.assigned.warmup
        process_id = member.process_id

        def standby_elsewhere(name: str, number: int) -> bool:
            """Return whether another member of the process has a standby copy."""
            return holders.has_standby(name, number, process_id) and not _has(standby, name, number)

        def warmup_elsewhere(name: str, number: int) -> bool:
            return holders.has_warmup(name, number, process_id) and not _has(warmup, name, number)

        self._of_active = _Role(
            self._active,
            target.active,
            lambda name, number: (
                holders.active(name, number) is not None
                or standby_elsewhere(name, number)
                or warmup_elsewhere(name, number)
            ),
        )
        self._of_standby = _Role(
            standby,
            target.standby,
            lambda name, number: (
                (
                    holders.active(name, number) == process_id
                    and not _has(self._active, name, number)
                )
                or holders.has_standby(name, number, process_id)
                or warmup_elsewhere(name, number)
            ),
        )
        self._of_warmup = _Role(
            warmup,
            target.warmup,
            lambda name, number: (
                holders.active(name, number) == process_id
                or standby_elsewhere(name, number)
                or holders.has_warmup(name, number, process_id)
            ),
        )
        # A copy changes its role at once, whatever else the member has to give up first.
        _grant(self._of_standby, self._active)
        _convert(standby, self._of_standby, self._of_warmup)
        _convert(warmup, self._of_warmup, self._of_standby)

    @property
    def is_waiting(self) -> bool:
        return (
            self._of_active.is_waiting or self._of_standby.is_waiting or self._of_warmup.is_waiting
        )

    def revoking(self) -> HeldTasks:
        """Return the tasks to give up. Copies of tasks that become active are not given up."""
        for held, role in (
            (self._member.assigned.standby, self._of_standby),
            (self._member.assigned.warmup, self._of_warmup),
        ):
            for name, number in _each(held):
                if _has(self._target.active, name, number):
                    _remove(role.gone, name, number)
        return self._held(self._of_active.gone, self._of_standby.gone, self._of_warmup.gone)

    def keep_copies(self, *, all_of_them: bool) -> None:
        """Keep copies of tasks that become active later; `all_of_them`: none does in this step."""
        for held, role in (
            (self._member.assigned.standby, self._of_standby),
            (self._member.assigned.warmup, self._of_warmup),
        ):
            for name, number in _each(held):
                is_granted = not all_of_them and _has(self._of_active.new, name, number)
                if _has(self._target.active, name, number) and not is_granted:
                    role.kept.setdefault(name, set()).add(number)

    def kept(self) -> HeldTasks:
        """Return the tasks without new ones."""
        return self._held(self._of_active.kept, self._of_standby.kept, self._of_warmup.kept)

    def with_new(self, target_epoch: int) -> HeldTasks:
        """Return the tasks with the new ones; the new active tasks get that epoch."""
        kept = self.kept()
        active = {name: dict(epochs) for name, epochs in kept.active.items()}
        for name, number in _each(self._of_active.new):
            active.setdefault(name, {})[number] = target_epoch
        return HeldTasks(
            active,
            _joined(kept.standby, self._of_standby.new),
            _joined(kept.warmup, self._of_warmup.new),
        )

    def _held(self, active: Changing, standby: Changing, warmup: Changing) -> HeldTasks:
        epochs = self._member.assigned.active
        return HeldTasks(
            {
                name: {number: epochs.get(name, NO_EPOCHS)[number] for number in sorted(numbers)}
                for name, numbers in active.items()
            },
            _frozen(standby),
            _frozen(warmup),
        )


def _grant(role: _Role, tasks: Numbers) -> None:
    """Let the member have new tasks of that role now if they are among `tasks`."""
    for name, number in _each(tasks):
        if _has(role.new, name, number):
            _remove(role.new, name, number)
            role.kept.setdefault(name, set()).add(number)


def _convert(present: Numbers, old: _Role, new: _Role) -> None:
    """Turn copies of one role into copies of another."""
    for name, number in _each(present):
        if _has(new.new, name, number):
            _remove(new.new, name, number)
            new.kept.setdefault(name, set()).add(number)
            _remove(old.gone, name, number)


def _has(tasks: Numbers | Changing, name: str, number: int) -> bool:
    return number in tasks.get(name, _NONE)


def _remove(tasks: Changing, name: str, number: int) -> None:
    numbers = tasks.get(name)
    if numbers is not None:
        numbers.discard(number)
        if not numbers:
            del tasks[name]


def _each(tasks: Numbers | Changing) -> Iterable[tuple[str, int]]:
    return [(name, number) for name, numbers in tasks.items() for number in sorted(numbers)]


def _frozen(tasks: Changing) -> Numbers:
    return {name: frozenset(numbers) for name, numbers in tasks.items()}


def _joined(kept: Numbers, new: Changing) -> Numbers:
    joined = dict(kept)
    for name, numbers in new.items():
        joined[name] = joined.get(name, _NONE) | numbers
    return joined
