"""Drivers and tasks die while batches are written to tables of Parquet, Delta and Iceberg.

Processes play the parts of Spark: a driver runs one batch after the other, each with tasks in
processes of their own, commits it, notes it when the commit has returned, and is restarted when it
dies. In one run

    task        is killed while it writes and run again, or raced by a second attempt: the loser
                goes on writing files, even after the batch is committed, or its driver dead
    driver      is killed after some time, or before the k-th opcode of a commit

Each third batch removes files of earlier batches, and writes their rows anew. Readers always see
each batch completely or not at all. In the end each row exists once, and the table's directory has
only files that a version of the table names.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import deltalake  # noqa: F401 - as the next two: loaded once, before anybody is forked
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog.sql
import pyiceberg.io.pyarrow  # noqa: F401

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.kit import table_rows
from embedlog.spark.pipeline.tables.iceberg import IcebergFormat, path_of
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.stage import close_stage, make_durable, new_file, open_stage
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile, TableFormat, sweep
from tests.crash.child import Child, Say
from tests.crash.folders import run_in_folder
from tests.crash.opcodes import Countdown
from tests.crash.report import Options, Report
from tests.spark.pipeline.committer_process import open_table
from tests.support.sizes import size

CI_COUNT = size(3, full=9)
SOAK_COUNT = 600
"""A third of the runs for each format."""

KINDS = ("parquet", "delta", "iceberg")
ROWS = 24
APP = "query"
REPLACED_EVERY = 3
HUNG_AFTER_S = 300.0
"""Time limit of a whole run on a busy machine."""
_DONE = b"all is written"
_ROOTS = ("/embedlog/spark/", "/embedlog/runtime/", "/pyiceberg/table/", "/pyiceberg/catalog/")


def run(options: Options) -> Report:
    report = Report("tables", options)
    for number in range(options.count):
        kind = KINDS[number % len(KINDS)]
        seed = f"{options.seed}-{number}"
        run_in_folder(report, seed, partial(_Run, kind=kind, seed=seed, report=report))
        report.add(f"runs to {kind}")
    return report


class _Run:
    """One table, its batches, and all processes that die over it."""

    def __init__(self, base: str, kind: str, seed: str, report: Report) -> None:
        self._chance = random.Random(seed)
        self._name = f"run {seed} to {kind}"
        self._report = report
        self._path = f"{base}/table"
        self._notes = f"{base}/notes"
        os.mkdir(self._notes)
        self._kind = kind
        self._batch_count = self._chance.randint(2, 5)
        self._groups: list[int] = []
        """The process groups of all drivers, whose tasks may outlive them."""

    def run(self) -> None:
        deadline = time.monotonic() + HUNG_AFTER_S
        is_done = False
        while not is_done and time.monotonic() < deadline:
            seed = self._chance.random()
            driver = Child(lambda say, seed=seed: self._drive(say, random.Random(seed)))
            self._groups.append(driver.pid)
            self._report.add("drivers")
            if self._chance.random() < 0.4:
                time.sleep(min(self._chance.expovariate(3), 1))
                driver.kill()
                self._report.add("drivers killed at a moment")
            while not driver.is_ended and time.monotonic() < deadline:
                is_done |= _DONE in driver.read(1.0)
            how = driver.end()
            if not is_done and how == "by signal 9":
                self._report.add("drivers that died")
            else:
                self._expect(is_done, f"a driver ended {how}")
            driver.close()
            self._look()
        self._expect(is_done, "it hangs")
        self._end_tasks()
        self._check()

    def close(self) -> None:
        self._end_tasks()

    def _drive(self, say: Say, chance: random.Random) -> None:
        os.setpgid(0, 0)
        _Driver(self._kind, self._path, self._notes, chance).run(self._batch_count)
        say(_DONE)

    def _end_tasks(self) -> None:
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._groups.clear()

    # Checks run in processes of their own: the driver's libraries cannot be forked after use.

    def _look(self) -> None:
        self._report.add("looks")
        self._expect_nothing(lambda: _unlike_batches(_ids(self._kind, self._path)))

    def _check(self) -> None:
        def find() -> str:
            ids = _ids(self._kind, self._path)
            if ids != list(range(self._batch_count * ROWS)):
                return f"there is {ids}"
            there = {str(each) for each in Path(self._path, "data").rglob("*.parquet")}
            stray = there - _named(self._kind, self._path)
            return f"nobody names {sorted(stray)}" if stray else ""

        self._expect_nothing(find)
        self._report.add("rows", self._batch_count * ROWS)

    def _expect_nothing(self, find: object) -> None:
        assert callable(find)
        child = Child(lambda say: say((find() or "nothing").encode()[:3_000]))
        found = child.line().decode()
        child.close()
        self._expect(found == "nothing", found or "a reader failed")

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self._report.fail(f"{self._name}: {what}")


def _ids(kind: str, path: str) -> list[int]:
    return sorted(row["n"] for row in table_rows(kind, path))


def _unlike_batches(ids: list[int]) -> str:
    whole = len(ids) % ROWS == 0 and ids == list(range(len(ids)))
    return "" if whole else f"a reader saw {ids}"


def _named(kind: str, path: str) -> set[str]:
    """Return the data files of all versions of a table that are still readable."""
    if kind == "parquet":
        state = ManifestTable(path).state()
        return {f"{path}/{each}" for each in (*state.files, *state.removed)}
    if kind == "iceberg":
        table = IcebergFormat(path, {}).table()
        assert table is not None
        return {path_of(each) for each in table.inspect.all_files()["file_path"].to_pylist()}
    named = set()
    for log in Path(path, "_delta_log").glob("*.json"):
        for action in map(json.loads, log.read_text().splitlines()):
            if "add" in action:
                named.add(f"{path}/{unquote(action['add']['path'])}")
    return named


class _Driver:
    """The part of Spark's driver, in a process that may be killed."""

    def __init__(self, kind: str, path: str, notes: str, chance: random.Random) -> None:
        self._path, self._notes, self._chance = path, notes, chance
        self._table: TableFormat = open_table(kind, path)

    def run(self, batch_count: int) -> None:
        """Write the batches that are not noted as done."""
        sweep(self._path, APP, after=self._table.version_of(APP))
        while (version := len(os.listdir(self._notes))) < batch_count:
            key = CommitKey(APP, version)
            if self._table.version_of(APP) < version:
                self._write(key)
            if self._chance.random() < 0.1:
                os.kill(os.getpid(), signal.SIGKILL)
            with open(f"{self._notes}/{version}", "x", encoding="utf-8"):
                pass

    def _write(self, key: CommitKey) -> None:
        begin = key.version * ROWS
        rows, removes = list(range(begin, begin + ROWS)), []
        if key.version % REPLACED_EVERY == REPLACED_EVERY - 1:
            removes = self._table.files()[-2:]
            for file in removes:
                # No threads: a task forked beside a thread may wait for ever.
                rows += pq.ParquetFile(file.path).read(use_threads=False)["n"].to_pylist()
        stage = open_stage(self._path, key.directory)
        count = self._chance.randint(1, 3)
        adds, winners = [], {}
        for number in range(count):
            task = _Task(stage, rows[number::count], self._chance)
            path, size = task.run()
            place = winners[path] = f"{self._path}/data/{key.directory}/{os.path.basename(path)}"
            adds.append(DataFile(place, len(rows[number::count]), size))
        if self._chance.random() < 0.3:
            countdown = int(10 ** self._chance.uniform(1.5, 5))
            Countdown(countdown, lambda: os.kill(os.getpid(), signal.SIGKILL), _ROOTS).start()
        close_stage(stage, winners)
        self._table.commit(key, adds, removes)


class _Task:
    """The attempts of one task; attempts that lose are left alone, and write on."""

    def __init__(self, stage: str, rows: list[int], chance: random.Random) -> None:
        self._stage, self._rows, self._chance = stage, rows, chance

    def run(self) -> tuple[str, int]:
        """Return the file of the successful attempt, and its size."""
        while True:
            if self._chance.random() < 0.3:
                loser = Child(lambda _: self._lose())
                if self._chance.random() < 0.3:
                    time.sleep(self._chance.random() * 0.02)
                    loser.close()
            attempt = Child(self._report_written_file)
            if self._chance.random() < 0.2:
                time.sleep(self._chance.random() * 0.02)
                attempt.kill()
            said = attempt.line()
            attempt.close()
            if said:
                path, size = json.loads(said)
                return path, size

    def _report_written_file(self, say: Say) -> None:
        with suppress(BrokenPipeError):  # the driver has died
            say(json.dumps(self._write()).encode())

    def _write(self) -> tuple[str, int]:
        path = new_file(self._stage)
        pq.write_table(pa.table({"n": pa.array(self._rows, pa.int64())}), path)
        return path, make_durable(real_runtime().files, path)

    def _lose(self) -> None:
        """Write until the table's stage is closed, like a task that does not know of the loss."""
        deadline = time.monotonic() + 2
        with suppress(FileNotFoundError):
            while time.monotonic() < deadline:
                self._write()
                time.sleep(0.01)
