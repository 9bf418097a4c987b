"""`StageList`: several stages that share one place, which come and go one by one."""

from __future__ import annotations

from functools import partial
from typing import Any

from embedlog.testing.interception import Call, Proceed, Stage, Stages


class StageList:
    """The stages of one place. Without any, the place is empty, and requests cost nothing."""

    def __init__(self, stages: Stages, place: int) -> None:
        self._stages = stages
        self._place = place
        self._members: tuple[Stage, ...] = ()

    def add(self, stage: Stage) -> None:
        self._members = (*self._members, stage)
        self._install()

    def remove(self, stage: Stage) -> None:
        """Remove a stage; do nothing if it is not there."""
        self._members = tuple(each for each in self._members if each != stage)
        self._install()

    def _install(self) -> None:
        while True:
            members = self._members
            self._stages.put(self._place, self._run if members else None)
            if bool(self._members) == bool(members):  # else another thread came in between
                return

    def _run(self, call: Call, proceed: Proceed) -> Any:
        for stage in reversed(self._members):
            proceed = partial(_call, stage, proceed)
        return proceed(call)


def _call(stage: Stage, proceed: Proceed, call: Call) -> Any:
    return stage(call, proceed)
