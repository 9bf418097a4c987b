"""Waits for the lock of a file, which ends with its process."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing

from embedlog.errors import DirectoryLocked
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.files import DirectoryLock, make_directory
from embedlog.runtime.threads import Parked

LOCK_TIMEOUT_MS = 60_000
"""How long a commit or a sweep waits for others of its table."""
_POLL_MS = 20


def table_lock(path: str) -> AbstractContextManager[object]:
    """Hold the lock of a table whose format has none of its own."""
    runtime = real_runtime()
    make_directory(runtime.files, path, sync=True)
    return closing(wait_for_lock(runtime, f"{path}/_commit.lock", LOCK_TIMEOUT_MS))


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
