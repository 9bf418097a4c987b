"""Where the tasks of one job write files of a table, and nobody once the job is done.

An attempt of a task that was made again, or that lost a race against a speculative one, may still
be writing when the job is done, and its process is killed some time later. So the tasks write to a
directory that the driver has made. They never make it, and its name ends with the job: a late
attempt finds no place for a new file, and one that it has open goes with the directory.

    <table>/data/<application>-<version>-<random>.staging/<random>.parquet    while the job runs
    <table>/data/<application>-<version>-<random>.closed/...                  until it is cleared
    <table>/data/<application>-<version>/[column=value/]<random>.parquet      what won
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory, parent, remove_tree

if TYPE_CHECKING:
    from embedlog.runtime.files import Files

_OPEN, _CLOSED = ".staging", ".closed"


def open_stage(table: str, name: str) -> str:
    """Make the directory for the tasks of one job; its path. `name` is that of the commit's own."""
    runtime = real_runtime()
    path = f"{table}/data/{name}-{runtime.random.bytes(6).hex()}{_OPEN}"
    make_directory(runtime.files, path, sync=True)
    return path


def new_file(directory: str) -> str:
    """A path for a file there that nobody else has: each attempt of a task asks for its own."""
    return f"{directory}/{real_runtime().random.bytes(12).hex()}.parquet"


def make_durable(files: Files, path: str) -> int:
    """In a task: sync a file that was written; returns its bytes. Its name is the driver's."""
    file = files.open(path)
    try:
        file.sync()
        return file.size()
    finally:
        file.close()


def close_stage(stage: str, winners: Mapping[str, str]) -> None:
    """Once the job is done: give `winners` (path in the stage -> path in the table) their places.

    All else goes, also what is still being written. What has a place survives loss of power.
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
    """Is this the name of a stage, open or closed?"""
    return name.endswith((_OPEN, _CLOSED))


def clear_stage(files: Files, path: str) -> None:
    """Remove a stage whose driver has died; its tasks may still be at work."""
    remove_tree(files, path if path.endswith(_CLOSED) else _close(files, path))


def _close(files: Files, stage: str) -> str:
    closed = stage.removesuffix(_OPEN) + _CLOSED
    files.rename(stage, closed)
    return closed
