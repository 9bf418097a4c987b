"""Effects of the machine that would distort a measurement."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_CHUNK = bytes(1 << 20)
_SHARED_MEMORY = Path("/dev/shm")
_ROOM_MIN = 8 << 30


def memory_folder() -> str | None:
    """Return the folder for the files of measured brokers: in memory, like the mock's.

    On a disk one measures the disk and its other users. Return None, for the usual place, if memory
    has no space for gigabytes.
    """
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM_MIN:
        return str(_SHARED_MEMORY)
    return None


def warm_memory(size: int) -> None:
    """Touch `size` bytes of memory and free them before a measurement.

    The first touch of a page that a virtual machine never used, or has given back to its host, is
    the host's work: 10 us, more than a broker's whole work for four records of 1 KiB.
    """
    with tempfile.TemporaryFile(dir=memory_folder(), buffering=0) as file:
        for _ in range(size // len(_CHUNK)):
            file.write(_CHUNK)
