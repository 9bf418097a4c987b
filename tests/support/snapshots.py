"""A picture of every file below a directory, to prove that nothing was touched."""

from __future__ import annotations

import os
from pathlib import Path


def snapshot(place: Path) -> dict[str, tuple[str, int, int, bytes]]:
    """Return kind and mode, size, time of the last change in ns, and content of everything."""
    found = {}
    for each in [place, *place.rglob("*")]:
        stat = each.lstat()
        content = b""
        if each.is_symlink():
            content = os.fsencode(os.readlink(each))
        elif each.is_file():
            content = each.read_bytes()
        name = str(each.relative_to(place))
        found[name] = oct(stat.st_mode), stat.st_size, stat.st_mtime_ns, content
    return found
