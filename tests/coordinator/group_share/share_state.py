"""Share coordinators for tests: a dictionary, and the power to answer late or with errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from embedlog.common import Value
from embedlog.runtime.pending import Pending

Place = tuple[bytes, int]


class Summary(Value):
    """The state of one share partition."""

    error_code: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1


class ShareStates:
    """Every share coordinator of a cluster.

    `code` is the error of all calls. While `holds` is true, calls wait in `held`.
    """

    def __init__(self) -> None:
        self.states: dict[tuple[str, Place], Summary] = {}
        self.epochs: dict[tuple[str, Place], int] = {}
        self.calls: list[str] = []
        self.code = 0
        self.holds = False
        self.held: list[Callable[[], None]] = []

    def initialize(
        self, group_id: str, state_epoch: int, starts: Mapping[Place, int]
    ) -> Pending[dict[Place, int]]:
        """As `ShareStateClient.initialize`."""

        def initialized() -> dict[Place, int]:
            for place, start in starts.items():
                if not self.code:
                    count = -1 if start == -1 else 0
                    self.states[group_id, place] = Summary(0, 0, start, count)
                    self.epochs[group_id, place] = state_epoch
            return dict.fromkeys(starts, self.code)

        return self._answer("initialize", initialized)

    def delete(self, group_id: str, places: Iterable[Place]) -> Pending[dict[Place, int]]:
        """As `ShareStateClient.delete`."""
        places = list(places)

        def deleted() -> dict[Place, int]:
            if not self.code:
                for place in places:
                    self.states.pop((group_id, place), None)
            return dict.fromkeys(places, self.code)

        return self._answer("delete", deleted)

    def summaries(self, group_id: str, places: Iterable[Place]) -> Pending[dict[Place, Summary]]:
        """As `ShareStateClient.summaries`."""
        places = list(places)

        def summaries() -> dict[Place, Summary]:
            if self.code:
                return dict.fromkeys(places, Summary(error_code=self.code))
            return {place: self.states.get((group_id, place), Summary()) for place in places}

        return self._answer("summaries", summaries)

    def release(self) -> None:
        """Answer the held calls, in their order."""
        while self.held:
            self.held.pop(0)()

    def _answer(self, call: str, make: Callable[[], Any]) -> Pending[Any]:
        self.calls.append(call)
        pending: Pending[Any] = Pending()

        def answer() -> None:
            pending.complete(make())

        if self.holds:
            self.held.append(answer)
        else:
            answer()
        return pending
