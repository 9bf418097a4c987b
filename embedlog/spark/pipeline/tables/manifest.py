"""The pipeline's own Parquet table: numbered commit files list the files that belong to it.

    _log/00000000000000000007.json              one commit
    _log/00000000000000000016.checkpoint.json   the whole state after commit 16
    _log/lock                                   held while a commit is made
    data/...                                    Parquet files, see `tables.table`

A file of the log holds one line of JSON, and its CRC-32 in hexadecimal. A commit:

    {"version": 7, "time_ms": ..., "app": "...", "app_version": 3,
     "add": [{"path": "data/...", "rows": 10, "bytes": 1234, "part": "rows", "partition": [...]}],
     "remove": ["data/..."], "properties": {...}}

Readers need no lock: they read the newest checkpoint and the commits after it. Older log files are
deleted. Removed data files are deleted an hour later, so a list of files stays readable that long.

Delta through `deltalake` cannot replace this table:

    durability   a commit here is synced before it returns. `deltalake` 1.6 links its log file and
                 syncs nothing, so a loss of power can undo a finished commit. The archive
                 needs the sync: after its commit, retention deletes the records from the log.
    one commit   rows, dead letters and properties (the archive's offsets, the state of sessions)
                 change together. Delta has one schema for each table, and a commit's properties are
                 lost with its log file. The first commit needs a row.
    size         jobs and `read_table` need the extra `spark` only; `deltalake` is 134 MB more.
    readers      a reader without a library takes the paths in the JSON lines of `_log`.

Use Delta or Iceberg sinks for time travel, and for writers in other engines.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Any

from embedlog.errors import CorruptRecord, TimedOut
from embedlog.logger import Logger
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.files import make_directory, parent, write_whole
from embedlog.spark.pipeline.errors import TableConflict
from embedlog.spark.pipeline.tables.locking import LOCK_TIMEOUT_MS, wait_for_lock
from embedlog.spark.pipeline.tables.table import (
    ROWS,
    Basis,
    CommitKey,
    DataFile,
    check_staged,
    parse_partition,
)

_log = Logger("spark")

CHECKPOINT_EVERY = 16
DELETE_AFTER_MS = 3_600_000
_ONE_TIME_APPS_MAX = 256
ONE_TIME = "once:"
"""Prefix of applications that commit once; a checkpoint keeps the last 256 of them."""


@dataclass(slots=True)
class TableState:
    """The table after commit `version`, or -1 before the first one."""

    version: int = -1
    apps: dict[str, int] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)
    """Files that wait for their deletion -> the wall time of their removal in ms."""
    properties: dict[str, Any] = field(default_factory=dict)

    def apply(self, commit: Mapping[str, Any]) -> None:
        self.version = commit["version"]
        self.apps.pop(commit["app"], None)  # keeps the dict ordered by last commit
        self.apps[commit["app"]] = commit["app_version"]
        for path in commit["remove"]:
            del self.files[path]
            self.removed[path] = commit["time_ms"]
        for each in commit["add"]:
            self.files[each["path"]] = each
        for path in commit.get("deleted", ()):
            self.removed.pop(path, None)
        self.properties.update(commit.get("properties", {}))


class ManifestTable:
    """A Parquet table at `path`. Its first commit makes it. Implements `TableFormat`."""

    def __init__(
        self,
        path: str,
        runtime: Runtime | None = None,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self.path = path
        self.runtime = runtime or real_runtime()
        self._files = self.runtime.files
        self._log = f"{path}/_log"
        self._reached = reached
        """Called with the name of each step of a commit; a test raises in it to end the work."""

    def version_of(self, app: str) -> int:
        return self.state().apps.get(app, -1)

    def files(self, part: str = ROWS) -> list[DataFile]:
        """Return the files of the newest state, oldest first."""
        found = self.state().files.values()
        return [self.data_file(each) for each in found if each["part"] == part]

    def parts(self) -> list[str]:
        return sorted({each["part"] for each in self.state().files.values()})

    def commit(
        self,
        key: CommitKey,
        adds: Sequence[DataFile],
        removes: Sequence[DataFile] = (),
        bases: Sequence[Basis] = (),
        *,
        properties: Mapping[str, Any] | None = None,
    ) -> bool:
        """See `TableFormat.commit`. `properties` are the table's own, stored beside its files."""
        if self.version_of(key.app) >= key.version:
            return False
        with self.locked():
            state = self.state()
            if state.apps.get(key.app, -1) >= key.version:
                return False
            gone = [each.path for each in removes if self._relative(each.path) not in state.files]
            if gone:
                raise TableConflict(f"{self.path}: another commit took {gone[0]} away")
            present = [self.data_file(each) for each in state.files.values()] if bases else ()
            for basis in bases:
                basis.check(present)
            check_staged(adds, self._files)
            now_ms = self.runtime.clock.wall_ms()
            commit = {
                "version": state.version + 1,
                "time_ms": now_ms,
                "app": key.app,
                "app_version": key.version,
                "add": [self._entry(each) for each in adds],
                "remove": [self._relative(each.path) for each in removes],
                "deleted": self._delete_removed(state, now_ms),
                "properties": dict(properties or {}),
            }
            self._reached("table: before the commit")
            self._write(f"{commit['version']:020d}.json", commit)
            self._reached("table: after the commit")
            state.apply(commit)
            if state.version % CHECKPOINT_EVERY == 0 and state.version:
                self._checkpoint(state)
        return True

    def state(self) -> TableState:
        """Read the newest state without a lock.

        Raises:
            CorruptRecord: a file of the log is damaged.
        """
        for _ in range(100):
            try:
                return self._read_state()
            except FileNotFoundError:
                continue  # after the listing, a writer made a checkpoint and deleted older files
        raise TimedOut(f"{self._log}: changes faster than it can be read")

    def _read_state(self) -> TableState:
        if self._files.stat(self._log) is None:
            return TableState()
        names = self._files.list(self._log)
        checkpoints = [name for name in names if name.endswith(".checkpoint.json")]
        state = TableState()
        if checkpoints:
            found = self._read(checkpoints[-1])
            state = TableState(
                found["version"],
                found["apps"],
                {each["path"]: each for each in found["files"]},
                found["removed"],
                found["properties"],
            )
        while f"{state.version + 1:020d}.json" in names:
            state.apply(self._read(f"{state.version + 1:020d}.json"))
        later = [n for n in names if _is_commit(n) and int(n[:20]) > state.version]
        if later:
            raise CorruptRecord(
                f"{self._log}/{later[0]}", 0, f"commit {state.version + 1} before it is missing"
            )
        return state

    def locked(self) -> AbstractContextManager[object]:
        make_directory(self._files, self._log, sync=True)
        return closing(wait_for_lock(self.runtime, f"{self._log}/lock", LOCK_TIMEOUT_MS))

    def _checkpoint(self, state: TableState) -> None:
        one_time = [app for app in state.apps if app.startswith(ONE_TIME)]
        for app in one_time[:-_ONE_TIME_APPS_MAX]:
            del state.apps[app]
        self._write(
            f"{state.version:020d}.checkpoint.json",
            {
                "version": state.version,
                "apps": state.apps,
                "files": list(state.files.values()),
                "removed": state.removed,
                "properties": state.properties,
            },
        )
        self._reached("table: after the checkpoint")
        for name in self._files.list(self._log):
            # Keep the previous checkpoint and the commits after it, for readers that listed them.
            if name[:20].isdecimal() and int(name[:20]) < state.version - CHECKPOINT_EVERY:
                self._files.remove(f"{self._log}/{name}")

    def _delete_removed(self, state: TableState, now_ms: int) -> list[str]:
        deleted = [p for p, since in state.removed.items() if now_ms - since >= DELETE_AFTER_MS]
        for path in deleted:
            self._delete(path)
        return deleted

    def _delete(self, path: str) -> None:
        """Delete a file of the table, and its directory if it is empty.

        A commit is a file that others may have written: a path that leads out of the table, or
        through a link, is left alone.
        """
        whole = f"{self.path}/{path}"
        parts = path.split("/")
        is_inside = {"", ".", ".."}.isdisjoint(parts) and "\0" not in path
        above = [parent(whole)] if is_inside else []
        while above and len(above[-1]) > len(self.path):
            above.append(parent(above[-1]))
        stats = [self._files.stat(each) for each in above[:-1]]
        if not is_inside or not all(stat is None or stat.is_directory for stat in stats):
            _log.warning("%s: %r is no file of the table, and is not deleted", self.path, path)
            return
        stat = self._files.stat(whole)
        if stat is not None and stat.is_file:
            self._files.remove(whole)
        if stats and stats[0] is not None and not self._files.list(above[0]):
            self._files.remove(above[0])

    def _entry(self, file: DataFile) -> dict[str, Any]:
        return {
            "path": self._relative(file.path),
            "rows": file.row_count,
            "bytes": file.size_bytes,
            "part": file.part,
            "partition": [list(each) for each in file.partition],
        }

    def data_file(self, entry: Mapping[str, Any]) -> DataFile:
        return DataFile(
            f"{self.path}/{entry['path']}",
            entry["rows"],
            entry["bytes"],
            entry["part"],
            parse_partition(json.dumps(entry["partition"])),
        )

    def _relative(self, path: str) -> str:
        assert path.startswith(self.path + "/"), (path, self.path)
        return path[len(self.path) + 1 :]

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        line = json.dumps(document, separators=(",", ":")).encode()
        content = b"%s\n%08x\n" % (line, zlib.crc32(line))
        write_whole(self._files, f"{self._log}/{name}", content, sync=True)

    def _read(self, name: str) -> Any:
        path = f"{self._log}/{name}"
        line, _, check = self._files.read(path).partition(b"\n")
        if check.strip() != b"%08x" % zlib.crc32(line):
            raise CorruptRecord(path, 0, f"CRC {zlib.crc32(line):08x}, written {check[:16]!r}")
        return json.loads(line)


def _is_commit(name: str) -> bool:
    return len(name) == 25 and name[:20].isdecimal() and name.endswith(".json")
