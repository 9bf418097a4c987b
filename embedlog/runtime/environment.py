"""Variables of the process's environment, which the programs that it starts inherit."""

from __future__ import annotations

import os


def set_default(name: str, value: str) -> None:
    """Set a variable that nobody has set."""
    os.environ.setdefault(name, value)
