"""The threads and descriptors of this process, compared by tests that must leave nothing.

Comparing numbers is not enough: garbage of earlier tests may close at any moment.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


def threads() -> set[threading.Thread]:
    """Return the running threads."""
    return set(threading.enumerate())


def descriptors() -> set[tuple[str, str]]:
    """Return the open descriptors by number; no two sockets or files have the same name."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def librdkafka() -> dict[int, str]:
    """Return the running threads of librdkafka, which Python does not know: their names by id."""
    names = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # it ended during the listing
            names[int(task.name)] = (task / "comm").read_text().strip()
    return {number: name for number, name in names.items() if name.startswith("rdk:")}
