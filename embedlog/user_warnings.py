"""`warn_user`: warnings that point at the user's line of code."""

from __future__ import annotations

# Imported at the top: warnings may come while the interpreter ends, when imports fail.
from sys import _getframe
from warnings import warn_explicit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    Line = tuple[str, int, str, dict[str | tuple[str, type[Warning], int], int]]
    """File, line number, module, and the module's registry of shown warnings."""

_NOT_THE_USERS = frozenset(("asyncio", "concurrent", "embedlog", "threading", "wire"))
"""Packages whose frames are never the user's: this library, threads and event loops."""


def warn_user(
    message: str, category: type[Warning] = UserWarning, *, line: Line | None = None
) -> None:
    """Issue a warning at the innermost line outside `embedlog` and `wire`, or at `line`.

    The warning names the user's call, and a filter by module matches the user's module. If the
    whole stack belongs to the library, as in its command line, the warning names the outermost
    frame.
    """
    file, number, module, registry = line or user_line() or _line_of(_outermost(_getframe(1)))
    warn_explicit(message, category, file, number, module=module, registry=registry)


def user_line() -> Line | None:
    """Return the innermost line outside the library; None if this thread has none."""
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
