"""The common part of the three table formats: one commit adds and removes files, exactly once.

A commit has a key: an application id (the query's id) and a version (the batch's id). The files of
the winning tasks move to a directory of that key (see `tables.stage`), where readers do not see
them; then one commit of the driver shows them and removes other files. If a commit's version is
not greater than its application's last version, the commit was made before and is skipped.

    <table>/data/<application>-<version>/[column=value/]<random>.parquet

Commits and sweeps take the table's lock. A sweep by another run of the application therefore comes
before the commit, which then finds its files gone and fails, or after it, and spares the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from embedlog.runtime import real_runtime
from embedlog.runtime.files import Files, remove_tree
from embedlog.spark.pipeline.errors import StagedFilesGone, TableConflict
from embedlog.spark.pipeline.tables.stage import clear_stage, is_stage

ROWS = "rows"
DEAD_LETTERS = "dead_letters"


class CommitKey(NamedTuple):
    """The key that makes a commit happen once."""

    app: str
    version: int

    @property
    def directory(self) -> str:
        return f"{prefix(self.app)}{self.version:012d}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A table's Parquet file. `path` is absolute; `part` is ROWS, DEAD_LETTERS or session state."""

    path: str
    row_count: int
    size_bytes: int
    part: str = ROWS
    partition: tuple[tuple[str, str | None], ...] = ()


class Basis(NamedTuple):
    """The files from which a commit was made, and which other files it would have had to read."""

    seen: frozenset[str]
    """Paths of the table's files."""
    matters: Callable[[DataFile], bool]

    def check(self, present: Iterable[DataFile]) -> None:
        """Raise TableConflict if another commit brought a file that matters."""
        for each in present:
            if each.path not in self.seen and self.matters(each):
                raise TableConflict(f"{each.path}: another commit brought it meanwhile")


class TableFormat(Protocol):
    """A table of one format in a directory. For one thread at a time."""

    path: str

    def version_of(self, app: str) -> int:
        """Return the last version that `app` committed, or -1."""

    def files(self, part: str = ROWS) -> list[DataFile]:
        """Return the files of the newest state."""

    def commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile],
        bases: Sequence[Basis] = (),
    ) -> bool:
        """Show `adds` and remove `removes` in one step. False if this commit was made before.

        Raises:
            TableConflict: another commit removed a file of `removes`, or brought a file that
                matters to a basis.
            StagedFilesGone: a file of `adds` does not exist.
        """

    def locked(self) -> AbstractContextManager[object]:
        """Keep commits and sweeps of other processes waiting."""


def check_staged(adds: Sequence[DataFile], files: Files) -> None:
    """Raise StagedFilesGone if a file does not exist. Call it under the table's lock."""
    for each in adds:
        if files.stat(each.path) is None:
            raise StagedFilesGone(
                f"{each.path}: another run of this application removed it, and goes on in its place"
            )


def prefix(app: str) -> str:
    """Return the beginning of the names of an application's directories."""
    return hashlib.sha256(app.encode()).hexdigest()[:16] + "-"


def sweep_uncommitted(table: TableFormat, app: str) -> int:
    """Remove files that `app` staged and did not commit; return the count of directories."""
    if real_runtime().files.stat(f"{table.path}/data") is None:
        return 0
    with table.locked():
        return sweep(table.path, app, after=table.version_of(app))


def sweep(path: str, app: str, *, after: int, files: Files | None = None) -> int:
    """Remove files that `app` staged for versions after `after`; the caller has the table's lock.

    Files of other applications stay: these applications may run. Tasks of `app` that outlived
    their driver find their stage closed. Return the count of removed directories.
    """
    files = files or real_runtime().files
    data, begin, count = f"{path}/data", prefix(app), 0
    if files.stat(data) is None:
        return 0
    for name in files.list(data):
        number = name.removeprefix(begin)
        if not name.startswith(begin):
            continue
        if is_stage(name):
            clear_stage(files, f"{data}/{name}")
        elif number.isdecimal() and int(number) > after:
            remove_tree(files, f"{data}/{name}")
        else:
            continue
        count += 1
    return count


def partition_text(partition: Sequence[tuple[str, str | None]]) -> str:
    """Return a partition in the form that tasks report."""
    return json.dumps([list(each) for each in partition])


def parse_partition(text: str) -> tuple[tuple[str, str | None], ...]:
    """Read a text that `partition_text` made."""
    return tuple((str(name), value) for name, value in json.loads(text))
