"""What a one-time writer of a table staged goes, also when its process is killed.

A stream sweeps what it staged and did not commit when it starts again, under the same application
id. The id of a replay, a redrive or a packing of files never comes again. So as long as it is at
work it owns a file in the table's directory, and the lock on that ends with its process:

    <table>/_writers/<application, quoted>.lock

Whoever gets the lock of another writer knows that it died, and sweeps what it left. Streams do so
before each batch, and one-time writers before they begin. A table's manifest remembers the last
256 one-time commits, so that one that was made is never taken for one that was not.

A task that outlives its driver finds its stage closed (see `sinks.stage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, unquote

from embedlog.errors import DirectoryLocked
from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory
from embedlog.runtime.threads import Parked
from embedlog.spark.pipeline.sinks.table import sweep

if TYPE_CHECKING:
    from embedlog.runtime.files import DirectoryLock

_DIRECTORY = "_writers"
_SUFFIX = ".lock"
_LOCK_TIMEOUT_MS = 10_000
_LOCK_POLL_MS = 5


class _Table(Protocol):
    """What is needed of a table of any format."""

    path: str

    def version_of(self, app: str) -> int:
        """The last version that `app` committed, -1 when there is none."""


@contextmanager
def at_work(tables: Sequence[_Table], app: str) -> Iterator[None]:
    """Own one-time work in these tables, and leave nothing behind that was not committed.

    First goes what writers left that have died. `app` must be new; of tables at one path, one is
    enough.

    Raises:
        OSError: a table's directory cannot be written to.
    """
    with ExitStack() as owned:
        for table in {each.path: each for each in tables}.values():
            sweep_dead(table)
            owned.callback(_end, table, app, _own(table.path, app))
        yield


def sweep_dead(table: _Table) -> int:
    """Remove what writers staged that died before their commit; returns how many had died.

    Those that are at work, in this process or another, are left alone.
    """
    files = real_runtime().files
    try:
        names = files.list(f"{table.path}/{_DIRECTORY}")
    except FileNotFoundError:
        return 0
    count = 0
    for name in [each for each in names if each.endswith(_SUFFIX)]:
        try:
            lock = files.lock(f"{table.path}/{_DIRECTORY}/{name}")
        except DirectoryLocked:
            continue
        _end(table, unquote(name.removesuffix(_SUFFIX)), lock)
        count += 1
    return count


def _own(path: str, app: str) -> DirectoryLock:
    runtime = real_runtime()
    directory = f"{path}/{_DIRECTORY}"
    make_directory(runtime.files, directory, sync=True)
    name = _name(path, app)
    start_ms = runtime.clock.monotonic_ms()
    while True:
        try:
            lock = runtime.files.lock(name)
            if runtime.files.stat(name) is not None:
                break
            lock.close()  # who sweeps removed the file between its opening and its lock
        except DirectoryLocked:
            # Who sweeps found the file between its making and its lock, and has it for a moment.
            if runtime.clock.monotonic_ms() - start_ms > _LOCK_TIMEOUT_MS:
                raise
        Parked().sleep(_LOCK_POLL_MS)
    # After a loss of power the name must be there if what is staged next is there.
    runtime.files.sync_directory(directory)
    return lock


def _end(table: _Table, app: str, lock: DirectoryLock) -> None:
    """Sweep for `app`, whose lock is held, and give that back."""
    try:
        sweep(table.path, app, after=table.version_of(app))
        # Another sweeper may have it already; what cannot be removed is removed by the next one.
        with suppress(OSError):
            real_runtime().files.remove(_name(table.path, app))
    finally:
        lock.close()


def _name(path: str, app: str) -> str:
    return f"{path}/{_DIRECTORY}/{quote(app, safe='')}{_SUFFIX}"
