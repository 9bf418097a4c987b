"""Environment variables of this process and its child programs."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or None."""
    return os.environ.get(name)


def set_default(name: str, value: str) -> None:
    """Set an environment variable, unless it already has a value."""
    os.environ.setdefault(name, value)


def set_for_now(values: Mapping[str, str]) -> Callable[[], None]:
    """Set environment variables. The returned function gives each its former value back."""
    former = {name: os.environ.get(name) for name in values}
    os.environ.update(values)

    def give_back() -> None:
        for name, value in former.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return give_back
