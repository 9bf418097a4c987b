"""`Condition`: a state of the cluster that a test waits for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

TIMEOUT = 10
"""The default time limit of a wait, in seconds."""


class Condition(ABC, Generic[T]):
    """One wanted state. `look` is called by one thread at a time."""

    wanted: str
    """The state in words, for the error."""
    heeds_own = False
    """Whether `look` may change the cluster itself."""

    @abstractmethod
    def look(self) -> T | None:
        """Return the result of the wait if the state is reached; None if it is not."""

    @abstractmethod
    def seen(self) -> str:
        """Return the state that the last `look` found, in words."""

    def near(self) -> Sequence[str]:
        """Return facts that may explain why the state was not reached."""
        return ()

    def begin(self) -> None:  # noqa: B027 - optional hook
        """Prepare, before the first look."""

    def end(self) -> None:  # noqa: B027 - optional hook
        """Undo `begin`."""
