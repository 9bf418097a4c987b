"""What the machine itself would otherwise add to a figure."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_CHUNK = bytes(1 << 20)
_SHARED_MEMORY = Path("/dev/shm")
_ROOM_MIN = 8 << 30


def memory_folder() -> str | None:
    """Where brokers that are measured keep their files: in memory, as the mock does.

    On a disk one measures the disk, and whose writes it is busy with. None, for the usual place,
    where memory has no room for gigabytes.
    """
    if _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM_MIN:
        return str(_SHARED_MEMORY)
    return None


def warm_memory(size: int) -> None:
    """Touch `size` bytes of memory and give them back, for whoever is measured next.

    The first touch of a page that a virtual machine never used, or has given back to its host, is
    the host's work: 10 us, more than all that a broker does for four records of 1 KiB.
    """
    with tempfile.TemporaryFile(dir=memory_folder(), buffering=0) as file:
        for _ in range(size // len(_CHUNK)):
            file.write(_CHUNK)
