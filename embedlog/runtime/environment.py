"""Environment variables of this process and its child programs."""

from __future__ import annotations

import os


def variable(name: str) -> str | None:
    """Return the value of an environment variable, or None."""
    return os.environ.get(name)


def set_default(name: str, value: str) -> None:
    """Set an environment variable, unless it already has a value."""
    os.environ.setdefault(name, value)
