"""`Guarded`: runs a function of a test inside a request, and keeps its error."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Guarded:
    """A function of a test. Its first error is raised when the rule ends.

    An error inside a request would end a connection or reach a client, and the test would look for
    it in the wrong place.
    """

    __slots__ = ("_function", "failure")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.failure: Exception | None = None

    def __call__(self, default: Any, *arguments: Any) -> Any:
        """Return the function's result, or `default` if it raises."""
        try:
            return self._function(*arguments)
        except Exception as error:
            if self.failure is None:
                self.failure = error
            return default

    def __repr__(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))
