"""The lock of a table: a file's lock, which ends with its process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing

from embedlog.errors import DirectoryLocked
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.files import DirectoryLock, make_directory
from embedlog.runtime.threads import Parked
from embedlog.spark.pipeline.tables.table import Basis, CommitKey, DataFile

LOCK_TIMEOUT_MS = 60_000
"""How long a commit or a sweep waits for others of its table."""
_POLL_MS = 20


class LockedFormat(ABC):
    """Base of the formats that have no lock of their own: a commit holds a lock beside the table.

    See `TableFormat`.
    """

    path: str

    def commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile] = (),
        bases: Sequence[Basis] = (),
    ) -> bool:
        with self.locked():
            return self._commit(key, adds, removes, bases)

    def locked(self) -> AbstractContextManager[object]:
        runtime = real_runtime()
        make_directory(runtime.files, self.path, sync=True)
        return closing(wait_for_lock(runtime, f"{self.path}/_commit.lock", LOCK_TIMEOUT_MS))

    @abstractmethod
    def _commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile],
        bases: Sequence[Basis],
    ) -> bool:
        """Commit as `commit` does. Requires: the lock."""


def wait_for_lock(runtime: Runtime, path: str, timeout_ms: int) -> DirectoryLock:
    """Lock the file at `path`; its directory must exist.

    Raises:
        DirectoryLocked: another holder had it for `timeout_ms`.
    """
    start_ms = runtime.clock.monotonic_ms()
    while True:
        try:
            return runtime.files.lock(path)
        except DirectoryLocked:
            if runtime.clock.monotonic_ms() - start_ms >= timeout_ms:
                raise
        Parked().sleep(_POLL_MS)
