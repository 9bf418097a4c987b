"""Code of the user's that clients call: how it is named in errors, and how it may fail."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attempt(
    callback: Callable[..., object], *arguments: object, about: str = ""
) -> Exception | None:
    """Call it; return what it raised, for the caller to raise when its own work is done.

    With `about`, in words what it was called for, the traceback names the user's function too.
    """
    try:
        callback(*arguments)
    except Exception as error:
        if about:
            error.add_note(f"raised by {describe(callback)}, called {about}")
        return error
    return None


def describe(function: object) -> str:
    """The name of a user's function, method, class or object, as "module.qualified name".

    Of a partial it is that of the function inside, of another object that of its class.

    >>> describe(describe)
    'embedlog.client.user_code.describe'
    """
    inner = getattr(function, "func", None)
    if callable(inner):
        return describe(inner)
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type) and hasattr(function, "__func__"):
        # A bound method, by the class of its object: where it was inherited from says less.
        return f"{describe(type(owner))}.{getattr(function, '__name__', '?')}"
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)
    name: str = named.__qualname__
    return name if module in {None, "builtins"} else f"{module}.{name}"
