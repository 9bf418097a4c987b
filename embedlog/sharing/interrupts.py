"""Ctrl-C inside the work of a share partition.

In process a thread of the user does the work. Moves that are half made would never end: their
records could neither be acknowledged nor come again. So the share partition leaves memory, and its
stored state is loaded again.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, Protocol, TypeVar

    from embedlog.sharing.state_writer import StateWriter

    P = ParamSpec("P")
    R = TypeVar("R")

    class Fenceable(Protocol):
        """A share partition."""

        writer: StateWriter

        def fence(self) -> None: ...

    S = TypeVar("S", bound=Fenceable)


def whole(work: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Fence the share partition if Ctrl-C comes inside its method `work`."""

    def worked(share: S, /, *arguments: P.args, **how: P.kwargs) -> R:
        try:
            return work(share, *arguments, **how)
        except Exception:
            raise
        except BaseException:
            share.fence()
            share.writer.abandon(errors.CoordinatorNotAvailable())
            raise

    worked.__doc__ = work.__doc__
    worked.__name__ = work.__name__
    return worked
