"""Runs in temporary folders, which are kept if the run found a failure."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Protocol

from tests.crash.report import Report


class Run(Protocol):
    """One run with the files of a folder."""

    def run(self) -> None: ...
    def close(self) -> None:
        """End all processes of the run."""


def run_in_folder(report: Report, seed: str, make: Callable[[str], Run]) -> None:
    """Run the object that `make` makes for a temporary folder."""
    prefix = f"crash-{report.name}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        broken = report.failure_count
        one = make(folder)
        try:
            one.run()
        finally:
            one.close()
        if report.failure_count > broken:
            kept = tempfile.mkdtemp(prefix="crash-kept-")
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            report.note(f"run {seed} is kept in {kept}")
