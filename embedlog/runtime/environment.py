"""Environment variables of this process and its child programs."""

from __future__ import annotations

import os


def set_default(name: str, value: str) -> None:
    """Set a variable unless it is set."""
    os.environ.setdefault(name, value)
