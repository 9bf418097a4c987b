"""What the three table formats have in common: files come and go in one commit, once.

A commit has a key: an application id (the query's id) and a version (the batch's id). What tasks
write that win comes into a directory of that key (see `sinks.stage`), and nobody sees it; the
driver's one commit makes all of it visible and takes other files away. A commit whose version is
not greater than the last one of its application has been made already, and is not made again.

    <table>/data/<application>-<version>/[column=value/]<random>.parquet
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from embedlog.runtime import real_runtime
from embedlog.runtime.files import Files, remove_tree
from embedlog.spark.pipeline.sinks.stage import clear_stage, is_stage

ROWS = "rows"
DEAD_LETTERS = "dead_letters"


class CommitKey(NamedTuple):
    """What makes a commit happen once."""

    app: str
    version: int

    @property
    def directory(self) -> str:
        """The name of the directory of its files."""
        return f"{prefix(self.app)}{self.version:012d}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of a table. `path` is absolute; `part` says which list of the table it is
    in: its rows, or its dead letters."""

    path: str
    row_count: int
    size_bytes: int
    part: str = ROWS
    partition: tuple[tuple[str, str | None], ...] = ()


class TableFormat(Protocol):
    """A table of one format at a directory. One thread uses it at a time."""

    path: str

    def version_of(self, app: str) -> int:
        """The last version that `app` committed, -1 when there is none."""

    def files(self, part: str = ROWS) -> list[DataFile]:
        """The files of the newest state."""

    def commit(self, key: CommitKey, adds: Sequence[DataFile], removes: Sequence[DataFile]) -> bool:
        """Make `adds` visible and take `removes` away, in one step. False: it was made before.

        Raises:
            TableConflict: a file of `removes` is not there any more.
        """


def prefix(app: str) -> str:
    """The beginning of the names of an application's directories."""
    return hashlib.sha256(app.encode()).hexdigest()[:16] + "-"


def sweep(path: str, app: str, *, after: int, files: Files | None = None) -> int:
    """Remove what `app` staged for versions greater than `after` and never committed.

    Its own files only: other applications may be at work. Tasks of its own that have outlived their
    driver find their stage closed. Returns how many directories went.
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
    """A partition as the tasks report it."""
    return json.dumps([list(each) for each in partition])


def parse_partition(text: str) -> tuple[tuple[str, str | None], ...]:
    """What `partition_text` made."""
    return tuple((str(name), value) for name, value in json.loads(text))
