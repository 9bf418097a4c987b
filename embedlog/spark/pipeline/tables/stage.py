"""The directory in which the tasks of one job write a table's files, until the job is done.

Spark may run an attempt of a task again, or run two at once. The losing attempt may still write
when the job is done; its process is killed some time later. So the driver makes the directory, and
renames it when the job is done. Tasks never make it: a late attempt cannot create a file, and the
files that the attempt has open are removed with the directory.

    <table>/data/<application>-<version>-<random>.staging/<random>.parquet    while the job runs
    <table>/data/<application>-<version>-<random>.closed/...                  until it is cleared
    <table>/data/<application>-<version>/[column=value/]<random>.parquet      files of the winners
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from embedlog.runtime import real_runtime
from embedlog.runtime.files import Files, make_directory, parent, remove_tree

_OPEN, _CLOSED = ".staging", ".closed"


def open_stage(table: str, name: str) -> str:
    """Make the directory for a job's tasks, return its path. `name` is the commit's directory."""
    runtime = real_runtime()
    path = f"{table}/data/{name}-{runtime.random.bytes(6).hex()}{_OPEN}"
    make_directory(runtime.files, path, sync=True)
    return path


def new_file(directory: str) -> str:
    """Return an unused path in `directory`. Each attempt of a task needs its own."""
    return f"{directory}/{real_runtime().random.bytes(12).hex()}.parquet"


def make_durable(files: Files, path: str) -> int:
    """Sync a file that a task wrote; return its size in bytes. The driver syncs its directory."""
    with closing(files.open(path)) as file:
        file.sync()
        return file.size()


def close_stage(stage: str, winners: Mapping[str, str]) -> None:
    """After the job, move `winners` (path in the stage -> path in the table) to their places.

    All other files of the stage are removed, even if an attempt still writes them. The winners
    survive a loss of power.
    """
    files = real_runtime().files
    closed = _close(files, stage)
    directories = {parent(place) for place in winners.values()}
    for directory in sorted(directories):
        make_directory(files, directory, sync=True)
    for path, place in winners.items():
        assert parent(path) == stage, (path, stage)
        files.rename(closed + path.removeprefix(stage), place)
    for directory in sorted(directories):
        files.sync_directory(directory)
    remove_tree(files, closed)


def is_stage(name: str) -> bool:
    """Whether this is the name of a stage, open or closed."""
    return name.endswith((_OPEN, _CLOSED))


def clear_stage(files: Files, path: str) -> None:
    """Remove a stage whose driver has died; its tasks may still be running."""
    remove_tree(files, path if path.endswith(_CLOSED) else _close(files, path))


def _close(files: Files, stage: str) -> str:
    closed = stage.removesuffix(_OPEN) + _CLOSED
    files.rename(stage, closed)
    return closed
