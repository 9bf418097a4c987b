"""Objects that a forked child must not use: clusters, and their clients in the process.

A child has a copy of its parent's memory. A cluster in memory would write into that copy, which
nobody else sees; a cluster over a directory would write into the parent's files. Threads that exist
only in the parent may hold the locks. So in the child every call fails at once, without touching a
lock; `close` does nothing.

The child gives each object another class, so that the parent's calls need no check of the process
for every record. The object's attributes move into one attribute that no method reads: so a bound
method that the user looked up before the fork fails as well.
"""

from __future__ import annotations

import os
from _weakref import ref

from embedlog.errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORKED = (
    "it was opened before the process forked, and belongs to the parent: in the child open a "
    "cluster of its own, or connect to an address that the parent listens on"
)
"""The reason in the error of a call in a forked child."""

_STATE = "_state_in_parent"
_HARMLESS = ("close", "__exit__", "__del__")
_SPECIAL = ("__enter__", "__iter__", "__next__", "__aenter__", "__aiter__", "__anext__")

_open: dict[int, ref[Any]] = {}
"""Objects that a child must not use, by id."""


def stays_in_parent(owned: object) -> None:
    """Make every public call of `owned` raise ClosedError in children forked later.

    In a child `close` and the end of a `with` block do nothing, and public attributes with text can
    still be read.
    """
    key = id(owned)
    _open[key] = ref(owned, lambda _: _open.pop(key, None))


def _give_up() -> None:
    """In a child: make every registered object refuse its calls."""
    for reference in list(_open.values()):
        owned = reference()
        if owned is not None:
            # Keep the state: objects in it would close themselves if it were dropped.
            state = owned.__dict__
            plain = {name: value for name, value in state.items() if _is_plain(name, value)}
            owned.__dict__ = {**plain, _STATE: state}
            owned.__class__ = _refusing(type(owned))
    _open.clear()


def _refusing(kind: type[Any]) -> type[Any]:
    """Return a subclass of `kind` with the same layout whose calls all refuse."""
    refuse: dict[str, Any] = {
        "__getattr__": _refuse,
        "__module__": kind.__module__,
        "__repr__": _describe,
        "__slots__": (),
    }
    for name in dir(kind):
        if name in _HARMLESS:
            is_coroutine = _is_coroutine_function(getattr(kind, name))
            refuse[name] = _nothing_to_await if is_coroutine else _nothing
        elif name == "__aexit__":
            refuse[name] = _nothing_to_await
        elif name in _SPECIAL or not name.startswith("__"):
            value = getattr(kind, name)
            if callable(value):
                refuse[name] = _refuse
            elif isinstance(value, property):
                refuse[name] = property(_refuse)
    return type(kind.__name__, (kind,), refuse)


def _is_plain(name: str, value: object) -> bool:
    return not name.startswith("_") and (value is None or isinstance(value, str))


def _refuse(owned: object, *_: object, **__: object) -> Any:
    raise ClosedError(f"this {type(owned).__name__} cannot be used: {FORKED}")


def _describe(owned: object) -> str:
    return f"<{type(owned).__name__}, of the process that forked this one>"


def _nothing(*_: object, **__: object) -> None:
    """Do nothing: a child does not close its parent's objects."""


async def _nothing_to_await(*_: object, **__: object) -> None:
    """Like `_nothing`, for a coroutine."""


def _is_coroutine_function(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _CO_COROUTINE)


_CO_COROUTINE = 0x80

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up)
