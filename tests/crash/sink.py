"""Committers, tasks, drivers and owners of a directory die while batches are written exactly once.

Processes play the parts of Spark: a driver runs one batch after the other, each with tasks and a
committer in processes of their own, notes a batch when its commit has returned, and is restarted
when it dies. In one run

    task        is killed while it writes and run again, or raced by a second attempt that wins
    committer   is killed after some time or before the k-th opcode; then `abort` may be called
    driver      is killed, or dies between the commit and its note; its committer may live on
    owner       of the directory is killed and restarted, or there is none; it also produces

Readers always see each batch completely or not at all. In the end each row exists once, each batch
is in one piece in each partition, offsets have no gaps, and every record exists that was
acknowledged to the owner's producer.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pyarrow as pa

import embedlog
import embedlog.broker.commits.worker  # loaded once, before any fork
import embedlog.cluster.cluster
from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.spark.committer import commit
from embedlog.spark.sink.options import SinkOptions
from embedlog.spark.sink.task import StagingTask
from embedlog.storage.staging import adopter, exchange
from embedlog.storage.staging.manifest import Manifest, StagedFile
from tests.crash.child import Child, Say
from tests.crash.folders import run_in_folder
from tests.crash.opcodes import Countdown
from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(2, full=30)
SOAK_COUNT = 2_000

PARTITIONS = 3
ROWS = 240
HUNG_AFTER_S = 1_200.0
"""Time limit of a whole run on a busy machine."""
_DONE = b"all is written"
_ROOTS = ("/embedlog/storage/", "/embedlog/runtime/", "/embedlog/broker/")


def run(options: Options) -> Report:
    report = Report("sink", options)
    for number in range(options.count):
        seed = f"{options.seed}-{number}"
        run_in_folder(report, seed, partial(_Run, seed=seed, report=report))
        report.add("runs")
    return report


class _Run:
    """One directory, its batches, and all processes that die over it."""

    def __init__(self, base: str, seed: str, report: Report) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.report = report
        self.path = f"{base}/data"
        self.notes = f"{base}/notes"
        os.mkdir(self.notes)
        self.level = self.chance.choice(("os", "fsync"))
        self.batch_count = self.chance.randint(1, 4)
        adopter.RENAMED_SIZE_MIN = self.chance.choice((0, 2_000, 1 << 40))
        self.has_owner = self.chance.random() < 0.6
        self.produced: list[bytes] = []
        """Records that were acknowledged to the owner's producer."""
        self.owner: Child | None = None
        self.driver: Child | None = None
        self.done = 0
        self.patience = 1
        """Grows with each driver that achieved nothing: on a busy machine a driver may be killed
        before it can do anything.
        """
        self.groups: list[int] = []
        """The process groups of all drivers, whose children may outlive them."""

    def run(self) -> None:
        maker = Child(lambda _: self._make())
        self._expect(maker.end() == "", "the topic could not be made")
        maker.close()
        deadline = time.monotonic() + HUNG_AFTER_S
        while time.monotonic() < deadline:
            self._start()
            time.sleep(min(self.chance.expovariate(25), 0.3))
            self._look()
            assert self.driver is not None
            if _DONE in self.driver.read(0):
                self.driver.end()
                break
            if self.driver.is_ended:
                self._end_driver()
            elif self.chance.random() < 0.05 / self.patience:
                self.driver.kill()
                self.report.add("drivers killed")
                self._end_driver()
            if self.owner is not None and self.chance.random() < 0.08 / self.patience:
                self._end_owner()
        else:
            self._expect(False, "it hangs")
        self._end_owner()
        self._check()

    def close(self) -> None:
        for child in (self.driver, self.owner):
            if child is not None:
                child.close()
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    # Processes

    def _start(self) -> None:
        if self.has_owner and self.owner is None and self.chance.random() < 0.7:
            seed = self.chance.random()
            self.owner = Child(lambda say: self._own(say, seed))
        if self.driver is None:
            seed = self.chance.random()
            self.driver = Child(lambda say: _Driver(self, random.Random(seed)).run(say))
            with suppress(ProcessLookupError):
                os.setpgid(self.driver.pid, self.driver.pid)
            self.groups.append(self.driver.pid)

    def _end_driver(self) -> None:
        assert self.driver is not None
        self.driver.close()
        self.report.add("drivers started again")
        self.driver = None
        done = len(os.listdir(self.notes))
        self.patience = 1 if done > self.done else self.patience + 1
        self.done = done

    def _end_owner(self) -> None:
        owner, self.owner = self.owner, None
        if owner is None:
            return
        if self.chance.random() < 0.7:
            owner.kill()
            self.report.add("owners killed")
        else:
            os.kill(owner.pid, signal.SIGTERM)
            how = owner.end()
            # The signal may come before the process has installed its handler.
            self._expect(how in {"", "by signal 15"}, f"the owner ended {how}")
        self.produced += [line for line in owner.rest() if line]
        owner.close()

    def _make(self) -> None:
        with embedlog.open(self.path, durability=self.level) as cluster:
            cluster.create_topic("t", PARTITIONS)

    def _own(self, say: Say, seed: float) -> None:
        """Own the directory and produce, until a signal."""
        ended = []
        signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
        chance = random.Random(seed)
        while not ended:
            try:
                cluster = embedlog.open(self.path, durability=self.level, background=True)
                break
            except embedlog.DirectoryLocked:
                time.sleep(0.005)
        else:
            return
        with cluster, cluster.producer() as producer:
            number = 0
            while not ended:
                value = b"p%d-%d" % (os.getpid(), number)
                number += 1
                producer.send("t", value, partition=chance.randrange(PARTITIONS)).result()
                say(value)
                time.sleep(chance.random() * 0.02)

    # Checks

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.report.fail(f"run {self.seed}: {what}")

    def _look(self) -> None:
        """Check that each batch is there completely or not at all, after all earlier batches."""
        with embedlog.open_reader(self.path) as reader:
            parts = reader.snapshot([("t", number) for number in range(PARTITIONS)])
            counts: dict[int, int] = {}
            for part in parts:
                for record in part.records():
                    value = bytes(record.value or b"")
                    if value.startswith(b"b"):
                        batch = int(value[1:].split(b"-")[0])
                        counts[batch] = counts.get(batch, 0) + 1
        self.report.add("looks")
        whole = dict.fromkeys(range(len(counts)), ROWS)
        self._expect(counts == whole, f"a reader saw {counts}")

    def _check(self) -> None:
        with embedlog.open_reader(self.path) as reader:
            parts = reader.snapshot([("t", number) for number in range(PARTITIONS)])
            found = [[(r.offset, bytes(r.value or b"")) for r in part.records()] for part in parts]
        rows: list[bytes] = []
        produced: list[bytes] = []
        for records in found:
            offsets = [offset for offset, _ in records]
            self._expect(offsets == list(range(len(records))), "offsets have gaps")
            pieces: list[int] = []
            for _, value in records:
                kind = int(value[1:].split(b"-")[0]) if value.startswith(b"b") else -1
                if kind >= 0:
                    rows.append(value)
                else:
                    produced.append(value)
                if not pieces or pieces[-1] != kind:
                    pieces.append(kind)
            batches = [kind for kind in pieces if kind >= 0]
            self._expect(batches == sorted(set(batches)), f"batches are in pieces: {pieces}")
        expected = sorted(row for batch in range(self.batch_count) for row in _rows(batch))
        lost, doubled = set(expected) - set(rows), len(rows) - len(set(rows))
        self._expect(sorted(rows) == expected, f"{len(lost)} lost, {doubled} doubled")
        missing = set(self.produced) - set(produced)
        self._expect(not missing, f"acknowledged and gone: {sorted(missing)[:5]}")
        self._expect(len(produced) == len(set(produced)), "the owner's records are doubled")
        self.report.add("rows", len(rows))
        self.report.add("records of owners", len(produced))


def _rows(batch: int) -> list[bytes]:
    return [b"b%d-%d" % (batch, number) for number in range(ROWS)]


class _Driver:
    """The part of Spark's driver, in a process that may be killed."""

    def __init__(self, run: _Run, chance: random.Random) -> None:
        self._path = run.path
        self._notes = run.notes
        self._batch_count = run.batch_count
        self._timeout_ms = 2_000 * run.patience
        self._chance = chance

    def run(self, say: Say) -> None:
        os.setpgid(0, 0)
        while (version := len(os.listdir(self._notes))) < self._batch_count:
            tasks = self._chance.randint(1, 3)
            split = [_rows(version)[number::tasks] for number in range(tasks)]
            job = f"{version}-{os.getpid()}-{self._chance.getrandbits(32):x}"
            messages = [self._task(job, rows) for rows in split]
            if not self._commit(version, messages):
                if self._chance.random() < 0.7:
                    aborter = Child(lambda _, job=job: _abort(self._path, job))
                    aborter.end()
                    aborter.close()
                return
            if self._chance.random() < 0.1:
                return
            with open(f"{self._notes}/{version}", "x", encoding="utf-8"):
                pass
        say(_DONE)

    def _task(self, job: str, rows: list[bytes]) -> bytes:
        """Run a task; return the message of the successful attempt."""
        while True:
            attempts = [Child(lambda say: _stage(self._path, job, rows, say))]
            fate = self._chance.random()
            if fate < 0.15:
                time.sleep(self._chance.random() * 0.02)
                attempts[0].close()
                continue
            if fate < 0.3:
                attempts.append(Child(lambda say: _stage(self._path, job, rows, say)))
            winner = attempts[-1]
            message = b"".join(winner.rest())
            for each in attempts:
                each.close()
            if message:
                return message

    def _commit(self, version: int, messages: list[bytes]) -> bool:
        fate = self._chance.random()
        countdown = int(10 ** self._chance.uniform(2, 5.5)) if fate < 0.25 else 0
        manifest = _manifest(version, messages)
        work = partial(_commit, self._path, manifest, countdown, self._timeout_ms)
        child = Child(work)
        if 0.25 <= fate < 0.45:
            time.sleep(min(self._chance.expovariate(30), 0.2))
            child.kill()
        is_done = b"done" in child.rest()
        child.close()
        return is_done


# Tasks and committers


def _stage(path: str, job: str, rows: list[bytes], say: Say) -> None:
    options = SinkOptions(path=path, servers="", topic="t", batch_size=700)
    files = StagingTask(options, job).write(_arrow(rows))
    listed = [[*file.topic_partition, file.path, file.size, file.count] for file in files]
    with suppress(BrokenPipeError):  # the driver has died
        say(json.dumps(listed).encode())


def _arrow(rows: list[bytes]) -> Iterator[pa.RecordBatch]:
    for begin in range(0, len(rows), 50):
        some = rows[begin : begin + 50]
        keys = [value.split(b"-")[1] for value in some]
        yield pa.record_batch({"key": pa.array(keys), "value": pa.array(some)})


def _manifest(version: int, messages: list[bytes]) -> Manifest:
    files = [
        StagedFile(TopicPartition(topic, partition), name, size=size, count=count)
        for message in messages
        for topic, partition, name, size, count in json.loads(message)
    ]
    return Manifest(os.urandom(16).hex(), files, application="query", version=version)


def _commit(path: str, manifest: Manifest, countdown: int, timeout_ms: int, say: Say) -> None:
    if countdown:
        Countdown(countdown, lambda: os.kill(os.getpid(), signal.SIGKILL), _ROOTS).start()
    # The owner has died with the manifest, or was too slow; or the driver has died.
    with suppress(EmbedlogError, BrokenPipeError):
        commit(path, manifest, timeout_ms=timeout_ms)
        say(b"done")


def _abort(path: str, job: str) -> None:
    files = real_runtime().files
    if not exchange.is_wanted(files, path, job):
        exchange.discard(files, path, job)
