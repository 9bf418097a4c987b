"""The state directory of a pipeline, which keeps its state between runs.

lock               its lock belongs to the process that runs the pipeline
checkpoint/        Spark's: offsets, commits, the query's id
status.json        totals and the last batch, replaced whole
written.json       rows of the last batch by sink: see `batch.written`
events.jsonl       a line for each batch and event; one older file is kept
dead_letters/      dead letters, if no Parquet sink takes them
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from embedlog.errors import DirectoryLocked
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.files import make_directory, write_fully, write_whole
from embedlog.spark.pipeline.batch.report import BatchReport, Totals
from embedlog.spark.pipeline.errors import PipelineInUse, ProjectError
from embedlog.spark.pipeline.project import Project
from embedlog.spark.pipeline.tables.locking import LOCK_TIMEOUT_MS, wait_for_lock

_EVENTS_MAX = 16 * 1024 * 1024
"""Size in bytes at which events.jsonl becomes the older file."""


class StateDirectory:
    """Reads and writes a state directory. Only its owner may write, but anyone adds events.

    `status` and `progress` are empty before the first batch.
    """

    def __init__(self, path: str, runtime: Runtime | None = None) -> None:
        self.path = path
        self._runtime = runtime or real_runtime()
        self._files = self._runtime.files

    @property
    def checkpoint(self) -> str:
        return f"{self.path}/checkpoint"

    def now_ms(self) -> int:
        return self._runtime.clock.wall_ms()

    def query_id(self) -> str:
        """Return the id of the checkpoint's query.

        Raises:
            ProjectError: there is no checkpoint.
        """
        try:
            text = self._files.read(f"{self.checkpoint}/metadata")
        except OSError:
            raise ProjectError(
                f"{self.checkpoint}: no checkpoint: the pipeline never ran"
            ) from None
        found: str = json.loads(text)["id"]
        return found

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Own the directory: no other run can begin before the end, or the death, of this process.

        Raises:
            PipelineInUse: another run owns it; names its process if that is known.
        """
        self.make()
        try:
            lock = self._files.lock(f"{self.path}/lock")
        except DirectoryLocked as error:
            raise PipelineInUse(f"the pipeline is running already: {error}") from error
        with closing(lock):
            yield

    def make(self) -> None:
        make_directory(self._files, self.path, sync=True)

    def status(self) -> dict[str, Any]:
        return self._facts("status.json")

    def totals(self) -> Totals:
        return Totals(**self.status().get("totals", {}))

    def count(self, batch: BatchReport) -> Totals:
        """Add a finished batch to the totals, once; replaces status.json."""
        totals = self.totals()
        totals.add(batch)
        self.write_status({"batch": batch.as_dict(), "totals": totals.as_dict()})
        return totals

    def write_status(self, facts: Mapping[str, Any]) -> None:
        """Replace some facts of status.json."""
        self.make()
        whole = {**self.status(), **facts, "updated_ms": self.now_ms()}
        text = json.dumps(whole, indent=1).encode()
        write_whole(self._files, f"{self.path}/status.json", text, sync=True)

    def progress(self) -> dict[str, Any]:
        """Return Spark's last progress; empty before the first batch."""
        return self._facts("progress.json")

    def note_progress(self, facts: Mapping[str, Any]) -> None:
        """Store a progress. Only the listener writes these files."""
        self.event("progress", facts, name="progress.jsonl")
        text = json.dumps({**facts, "at_ms": self.now_ms()}, default=str).encode()
        write_whole(self._files, f"{self.path}/progress.json", text, sync=False)

    def event(self, kind: str, facts: Mapping[str, Any], name: str = "events.jsonl") -> None:
        self.make()
        path = f"{self.path}/{name}"
        line = json.dumps({"at_ms": self.now_ms(), "event": kind, **facts}, default=str)
        # A replay in another process adds events as well, and so does another thread.
        lock = wait_for_lock(self._runtime, f"{path}.lock", LOCK_TIMEOUT_MS)
        with closing(lock):
            with closing(self._files.open(path, create=True)) as file:
                size = file.size()
                write_fully(file.write, [line.encode() + b"\n"], size)
            if size > _EVENTS_MAX:
                self._files.rename(path, path + ".1")

    def _facts(self, name: str) -> dict[str, Any]:
        path = f"{self.path}/{name}"
        if self._files.stat(path) is None:
            return {}
        found: dict[str, Any] = json.loads(self._files.read(path))
        return found


def check_state(project: Project) -> None:
    """Refuse a state directory that another pipeline uses.

    Raises:
        ProjectError: the state belongs to a pipeline of another name.
    """
    found = StateDirectory(project.state).status().get("name")
    if found not in (None, project.name):
        raise ProjectError(f"{project.state}: is the state of the pipeline {found!r}")
