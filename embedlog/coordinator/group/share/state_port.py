"""The calls of a group coordinator to the share coordinators; for the type checker.

`UNAVAILABLE` stands for share coordinators that nobody has made: each call answers
COORDINATOR_NOT_AVAILABLE for every place.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.answers import failed
from embedlog.runtime.pending import completed
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from embedlog.runtime.pending import Pending

    Place = tuple[bytes, int]
    """Topic id and partition number."""

    class Summary(Protocol):
        """The state of one share partition; -1 for an offset or a count that is not known."""

        @property
        def error_code(self) -> int: ...
        @property
        def leader_epoch(self) -> int: ...
        @property
        def start_offset(self) -> int: ...
        @property
        def delivery_complete_count(self) -> int: ...

    class ShareState(Protocol):
        """The share coordinators. No call waits; an answer has an entry for each place."""

        def initialize(
            self, group_id: str, state_epoch: int, starts: Mapping[Place, int]
        ) -> Pending[dict[Place, int]]:
            """Begin the state of share partitions; the answer has error codes."""

        def delete(self, group_id: str, places: Iterable[Place]) -> Pending[dict[Place, int]]:
            """Delete the state of share partitions; the answer has error codes."""

        def summaries(self, group_id: str, places: Iterable[Place]) -> Pending[dict[Place, Any]]:
            """Return the state of share partitions, a `Summary` each."""

    StateOfBroker = Callable[[], ShareState]


class _Unavailable:
    """Share coordinators that do not exist."""

    def initialize(
        self, _group_id: str, _state_epoch: int, starts: Mapping[Place, int]
    ) -> Pending[dict[Place, int]]:
        return completed(dict.fromkeys(starts, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))

    def delete(self, _group_id: str, places: Iterable[Place]) -> Pending[dict[Place, int]]:
        return completed(dict.fromkeys(places, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))

    def summaries(self, _group_id: str, _places: Iterable[Place]) -> Pending[Any]:
        return failed(errors.CoordinatorNotAvailable())


UNAVAILABLE = _Unavailable()
