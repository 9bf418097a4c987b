"""Warnings that point at the user's line, however deep in the library they are found."""

from __future__ import annotations

# At the top, as there is no importing any more when what is left is dropped at the very end.
from sys import _getframe
from warnings import warn_explicit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    Line = tuple[str, int, str, dict[str | tuple[str, type[Warning], int], int]]
    """File, line number, module, and what Python remembers of the module's warnings."""

_NOT_THE_USERS = frozenset(("asyncio", "concurrent", "embedlog", "threading", "wire"))
"""This library, and what runs its code in threads and event loops."""


def warn_user(
    message: str, category: type[Warning] = UserWarning, *, line: Line | None = None
) -> None:
    """Issue a warning at the innermost line outside `embedlog` and `wire`, or at `line`.

    So the warning names the call that the user wrote, and a filter by module means the user's
    module. Where the whole stack is the library's own, as in its command line, it names the
    outermost frame.
    """
    file, number, module, registry = line or user_line() or _line_of(_outermost(_getframe(1)))
    warn_explicit(message, category, file, number, module=module, registry=registry)


def user_line() -> Line | None:
    """The innermost line outside the library; None if there is none in this thread."""
    frame: FrameType | None = _getframe(1)
    while frame is not None and _package(frame) in _NOT_THE_USERS:
        frame = frame.f_back
    return None if frame is None else _line_of(frame)


def _line_of(frame: FrameType) -> Line:
    known = frame.f_globals
    registry = known.setdefault("__warningregistry__", {})
    return frame.f_code.co_filename, frame.f_lineno, known.get("__name__") or "", registry


def _outermost(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _package(frame: FrameType) -> str:
    known = frame.f_globals
    module: str = known.get("__package__") or known.get("__name__") or ""
    return module.partition(".")[0]
