"""The file calls of one of several data directories: all are refused after its disk's first error.

This is Kafka's LogDirFailureChannel. Some errors do not mean that the disk has failed: a shortage
of space or descriptors, or a missing name. They are only passed on. After any other error the
directory is neither read nor written.
"""

from __future__ import annotations

from errno import (
    EAGAIN,
    EEXIST,
    EINTR,
    EIO,
    EISDIR,
    ENAMETOOLONG,
    ENOENT,
    ENOTDIR,
    ENOTEMPTY,
    EXDEV,
)

from embedlog.runtime.wrapped_files import WrappedFiles
from embedlog.storage.log_health import HARMLESS_ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T
    from embedlog.runtime.files import Files

_HARMLESS = {*HARMLESS_ERRORS, EAGAIN, EEXIST, EINTR, EISDIR, ENAMETOOLONG, ENOTEMPTY, EXDEV}
_MISSING = (ENOENT, ENOTDIR)
"""Errors for a missing name: harmless unless the data directory itself is missing, because its disk
was unmounted."""


class WatchedFiles(WrappedFiles):
    """Files that pass calls to other files and watch their errors.

    `path` is the data directory.
    """

    def __init__(self, files: Files, path: str, on_failure: Callable[[str, OSError], None]) -> None:
        """`on_failure(path, error)` is called once, by a thread that may hold any lock."""
        super().__init__(files)
        self._on_failure = on_failure
        self.path = path
        self.failure: OSError | None = None
        """The error of the disk; None while it works."""

    def run(self, path: str, call: Callable[..., T], *arguments: object) -> T:
        """Run a file call unless the disk has failed; record its error if the disk fails now."""
        if self.failure is not None:
            raise OSError(EIO, f"{self.path} is offline: {self.failure}")
        try:
            return call(*arguments)
        except OSError as error:
            self._note(error)
            raise

    def _note(self, error: OSError) -> None:
        if error.errno in _HARMLESS or self.failure is not None:
            return
        if error.errno in _MISSING:
            try:
                if self._files.stat(self.path) is not None:
                    return
            except OSError as why:
                error = why
        self.failure = error
        self._on_failure(self.path, error)
