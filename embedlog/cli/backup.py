"""`embedlog backup`: copy a data directory as of one moment, open or closed."""

from __future__ import annotations

import json

from embedlog.cli.progress import bar
from embedlog.reader.backup import backup

_MB = 1_000_000


def run(path: str, target: str, *, timeout: float, as_json: bool) -> int:
    """Copy the directory and print a summary; return the exit status."""
    with bar("backup") as progress:
        made = backup(path, target, timeout_ms=int(timeout * 1000), progress=progress)
    if as_json:
        print(json.dumps({"target": target, **made.__dict__}))
        return 0
    print(
        f"{target}: {made.partitions} partitions, {made.batches} batches, "
        f"{made.bytes / _MB:.1f} MB of {path}"
    )
    for missing in made.missing:
        print(f"{missing} was deleted meanwhile, and is empty in the backup")
    return 0
