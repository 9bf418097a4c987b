"""What this process has, to be compared: nothing new may be left.

A number would not do: what garbage of an earlier test held goes at any moment.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress


def threads() -> set[threading.Thread]:
    """The threads that run."""
    return set(threading.enumerate())


def descriptors() -> set[tuple[str, str]]:
    """What is open, by number: a socket's or a file's name is no other one's."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # of the listing itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
