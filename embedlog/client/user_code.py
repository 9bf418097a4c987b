"""Users' callbacks and objects: call them safely, and name them in errors."""

from __future__ import annotations

from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attempt(
    callback: Callable[..., object], *arguments: object, about: str = ""
) -> Exception | None:
    """Call `callback`; return its exception, so that the caller can finish its own work first.

    With `about`, which says in words when the callback is called, the traceback also names the
    user's function.
    """
    try:
        as_user(callback, *arguments)
    except Exception as error:
        note = f"raised by {describe(callback)}, called {about}"
        if about and note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error
    return None


def describe(function: object) -> str:
    """Return "module.qualified name" of a user's function, method, class or object.

    A partial is named by the function inside, any other object by its class.

    >>> describe(describe)
    'embedlog.client.user_code.describe'
    """
    inner = getattr(function, "func", None)
    if callable(inner):
        return describe(inner)
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type) and hasattr(function, "__func__"):
        # A bound method is named by the class of its object, which says more than the base class.
        return f"{describe(type(owner))}.{getattr(function, '__name__', '?')}"
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)
    name: str = named.__qualname__
    return name if module in {None, "builtins"} else f"{module}.{name}"
