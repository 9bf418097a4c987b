"""The writers of a table: one process for each application, and nothing left of dead ones.

While it works, a writer owns a file in the table's directory. The lock on this file ends with its
process:

    <table>/_writers/<application, quoted>.lock

So a second run of a stream is refused, also if it has a copy of the state directory. A stream that
starts again has the same application id, and removes the files that it staged and did not commit.
The id of a replay, a redrive or a compaction never comes back. But a process that gets the lock of
another writer knows that this writer died, and removes its staged files.
Streams do so before each batch, one-time writers before they begin. A table's manifest remembers
the last 256 one-time commits, so that a finished commit is never taken for an unfinished one.

A task that outlives its driver finds its stage closed (see `tables.stage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import quote, unquote

from embedlog.errors import DirectoryLocked
from embedlog.runtime import real_runtime
from embedlog.runtime.files import DirectoryLock, make_directory
from embedlog.spark.pipeline.errors import PipelineInUse
from embedlog.spark.pipeline.tables.locking import wait_for_lock
from embedlog.spark.pipeline.tables.table import TableFormat, sweep_uncommitted

_DIRECTORY = "_writers"
_SUFFIX = ".lock"
_LOCK_TIMEOUT_MS = 10_000


@contextmanager
def owned(tables: Sequence[TableFormat], app: str) -> Iterator[None]:
    """Own the tables as the stream `app`. Its staged files stay at the end, for its next run.

    Raises:
        PipelineInUse: another process is this stream.
        OSError: a table's directory cannot be written.
    """
    with ExitStack() as owned:
        for table in {each.path: each for each in tables}.values():
            try:
                lock = _own(table.path, app)
            except DirectoryLocked as error:
                raise PipelineInUse(
                    f"{table.path}: another process writes to it as the same pipeline: {error}"
                ) from error
            owned.callback(_release, table, app, lock)
        yield


@contextmanager
def at_work(tables: Sequence[TableFormat], app: str) -> Iterator[None]:
    """Register `app` as a one-time writer of the tables; at the end, remove its uncommitted files.

    Files of dead writers are removed first. `app` must be new. Tables at the same path count once.

    Raises:
        OSError: a table's directory cannot be written.
    """
    with ExitStack() as owned:
        for table in {each.path: each for each in tables}.values():
            sweep_dead(table)
            owned.callback(_end, table, app, _own(table.path, app))
        yield


def sweep_dead(table: TableFormat) -> int:
    """Remove the staged files of writers that died before their commit; return the writers' count.

    Living writers, in this process or another, are not affected.
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
    while True:
        # Wait: `sweep_dead` may have found the file first, and then holds its lock for a moment.
        lock = wait_for_lock(runtime, name, _LOCK_TIMEOUT_MS)
        if runtime.files.stat(name) is not None:
            break
        lock.close()  # `sweep_dead` removed the file before it was locked here
    # Sync the lock file's name before files are staged: a sweep after a power loss needs it.
    runtime.files.sync_directory(directory)
    return lock


def _end(table: TableFormat, app: str, lock: DirectoryLock) -> None:
    """Remove the uncommitted files and the lock file of `app`, then release its lock."""
    try:
        sweep_uncommitted(table, app)
    except BaseException:
        lock.close()  # the next sweeper removes the file
        raise
    _release(table, app, lock)


def _release(table: TableFormat, app: str, lock: DirectoryLock) -> None:
    try:
        # Another sweeper may have removed the file.
        with suppress(OSError):
            real_runtime().files.remove(_name(table.path, app))
    finally:
        lock.close()


def _name(path: str, app: str) -> str:
    return f"{path}/{_DIRECTORY}/{quote(app, safe='')}{_SUFFIX}"
