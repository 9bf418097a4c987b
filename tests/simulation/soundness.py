"""`verify` in the simulations: it finds nothing in a directory that was closed, or left by a kill.

A directory is checked before each opening and after each close. Left out are openings after a loss
of power, which may leave a bad index or half a batch, and directories on a failed disk. The logs of
these stories are short, so every close writes the files that it leaves out for a short log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log import shutdown
from embedlog.storage.state_files.clean_shutdown import was_written_in_this_boot
from embedlog.storage.verification.directory import DirectoryCheck


class Soundness:
    """The checks of one story."""

    def __init__(self) -> None:
        self.count = 0
        """How many directories were checked."""
        self.findings: list[str] = []

    def check(self, files: Files, directory: str, when: str) -> None:
        """Run `verify` on a directory, if it can be sound."""
        if getattr(files, "failing", None) or files.stat(directory) is None:
            return
        if not was_written_in_this_boot(files, directory):
            return
        if files.stat(f"{directory}/{paths.UNRECOVERED}") is not None:
            return
        self.count += 1
        for each in DirectoryCheck(files, directory, lambda _size: None).findings():
            self.findings.append(f"verify, {when}: {each}")


@contextmanager
def verified() -> Iterator[Soundness]:
    """Check every data directory that is opened or closed in this context."""
    soundness = Soundness()
    opened, closed = LogManager.__init__, LogManager.close

    def open_checked(
        self: LogManager, runtime: Any, directory: str, *more: Any, **how: Any
    ) -> None:
        soundness.check(runtime.files, directory, "before an opening")
        opened(self, runtime, directory, *more, **how)

    def close_checked(self: LogManager) -> None:
        closed(self)
        if not self.directory.is_volatile:
            soundness.check(self.directory.files, self.directory.path, "after a close")

    with (
        patch.object(shutdown, "SOON_READ_SIZE", -1),
        patch.object(LogManager, "__init__", open_checked),
        patch.object(LogManager, "close", close_checked),
    ):
        yield soundness
