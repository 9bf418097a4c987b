"""Streaming queries of a real Spark are killed until all of their input is written.

A query reads a topic in micro-batches and writes another topic, by files or over the wire in
transactions, or a table of Parquet, Delta or Iceberg with the pipeline's runner. In one run, at
random moments from the first batch on,

    driver   is killed, its JVM or its Python, and restarted from its checkpoint
    worker   is killed: tasks run again; during planning or a commit the query ends and is
             restarted
    owner    of the topic's directory is killed and restarted, or there is none; over the wire
             it is the broker

Readers never see a row twice. In the end each row exists once, and offsets have no gaps.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import embedlog
import embedlog.broker.commits.worker  # loaded once, before any fork
from embedlog.spark.pipeline.kit import table_rows
from tests.crash.child import Child, Say
from tests.crash.folders import run_in_folder
from tests.crash.report import Options, Report
from tests.support.kafka import free_port
from tests.support.process_tree import descendants

CI_COUNT = 1
SOAK_COUNT = 60

KINDS = ("topic", "parquet", "delta", "iceberg", "wire")
ROWS = 3_000
PER_TRIGGER = 300
PARTITIONS = 3
_COMMITS = {"parquet": "_log/*", "delta": "_delta_log/*.json", "iceberg": "*.metadata.json"}
"""Number of files that a commit adds to a table."""
HUNG_AFTER_S = 240.0
"""Time limit of one life of a driver on a busy machine."""
_ROOT = Path(__file__).resolve().parents[2]


def run(options: Options) -> Report:
    report = Report("spark", options)
    for number in range(options.count):
        kind = KINDS[(number + options.seed - 1) % len(KINDS)]
        seed = f"{options.seed}-{number}"
        run_in_folder(report, seed, partial(_Run, kind=kind, seed=seed, report=report))
        report.add(f"runs to {kind}")
    return report


class _Run:
    """One query, its input, and all processes that die until it is written."""

    def __init__(self, base: str, kind: str, seed: str, report: Report) -> None:
        self._chance = random.Random(seed)
        self._kind = kind
        self._name = f"run {seed} to {kind}"
        self._report = report
        self._is_broken = False
        self._source, self._target = f"{base}/source", f"{base}/target"
        self._state = f"{base}/state"
        os.mkdir(self._state)
        self._log = open(f"{base}/driver.log", "ab")  # noqa: SIM115
        self._driver: subprocess.Popen[bytes] | None = None
        self._owner: Child | None = None
        self._drivers_to_kill = self._chance.randint(1, 2)
        self._workers_to_kill = self._chance.randint(2, 5)
        self._has_owner = kind == "wire" or (kind == "topic" and self._chance.random() < 0.7)
        self._port = free_port() if kind == "wire" else 0

    def run(self) -> None:
        maker = Child(lambda _: self._make())
        self._expect(maker.end() == "", "the logs could not be made")
        maker.close()
        is_done = False
        while not is_done and not self._is_broken:
            is_done = self._live()
            self._look()
        self._end_owner()
        if is_done:
            self._check()

    def close(self) -> None:
        if self._driver is not None:
            self._kill_driver("all")
        if self._owner is not None:
            self._owner.close()
        self._log.close()

    # One life of the driver

    def _live(self) -> bool:
        """Start the driver, and kill processes until it ends; return whether all input
        is written.
        """
        target = f"127.0.0.1:{self._port}" if self._port else self._target
        driver = self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.spark_job", self._kind, self._source]
            + [target, self._state, str(PER_TRIGGER)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            cwd=_ROOT,
        )
        self._report.add("drivers started")
        said = self._read(HUNG_AFTER_S)
        self._expect(b"started" in said, f"a driver did not start: {driver.poll()}")
        ends_at = time.monotonic() + self._chance.uniform(0.5, 12)
        hangs_at = time.monotonic() + HUNG_AFTER_S
        worker_count = 0
        while b"done" not in said and driver.poll() is None and time.monotonic() < hangs_at:
            said += self._read(self._chance.expovariate(2))
            if self._drivers_to_kill and time.monotonic() > ends_at:
                self._drivers_to_kill -= 1
                if self._chance.random() < 0.7:
                    self._wait_for_commit()
                self._kill_driver(self._chance.choice(("all", "all", "JVM", "Python")))
                self._report.add("drivers killed")
                return False
            if self._workers_to_kill and self._chance.random() < 0.4:
                worker_count += self._kill_worker()
            self._turn_owner()
        self._expect(time.monotonic() < hangs_at, "it hangs")
        said += self._read(0 if b"done" in said else 5)
        is_done = b"done" in said
        # Without its worker a plan or a commit fails, and the query with it.
        self._expect(is_done or worker_count > 0, f"it ended by itself: {driver.poll()}")
        self._report.add("queries ended by a worker's death", int(not is_done and worker_count > 0))
        self._kill_driver("all")
        return is_done

    def _read(self, timeout_s: float) -> bytes:
        assert self._driver is not None
        assert self._driver.stdout is not None
        stream = self._driver.stdout.fileno()
        if select.select([stream], [], [], timeout_s)[0]:
            said = os.read(stream, 4096)
            if not said:
                time.sleep(0.05)  # it is about to end
            return said
        return b""

    def _wait_for_commit(self) -> None:
        """Wait until a batch is committed that Spark may not have noted yet, or the driver ends."""
        assert self._driver is not None
        before = self._progress()
        deadline = time.monotonic() + 15
        while self._driver.poll() is None and time.monotonic() < deadline:
            if self._progress() > before:
                self._report.add("drivers awaited at a commit")
                time.sleep(min(self._chance.expovariate(50), 0.1))
                return
            time.sleep(0.005)

    def _progress(self) -> int:
        """Return a number that grows with each commit."""
        if self._kind in _COMMITS:
            return sum(1 for _ in Path(self._target).rglob(_COMMITS[self._kind]))
        with embedlog.open_reader(self._target) as reader:
            parts = reader.snapshot([("t", number) for number in range(PARTITIONS)])
            return sum(part.high_watermark for part in parts)

    def _kill_driver(self, what: str) -> None:
        driver, self._driver = self._driver, None
        assert driver is not None
        if what == "JVM":
            for pid in self._processes(driver.pid, "java"):
                _kill(pid)
            with suppress(subprocess.TimeoutExpired):
                driver.wait(5)
        elif what == "Python":
            _kill(driver.pid)
            driver.wait()
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        assert driver.stdout is not None
        driver.stdout.close()

    def _kill_worker(self) -> int:
        assert self._driver is not None
        pids = self._processes(self._driver.pid, "python")
        pids.remove(self._driver.pid)
        if not pids:
            return 0
        _kill(self._chance.choice(pids))
        self._workers_to_kill -= 1
        self._report.add("workers killed")
        return 1

    def _processes(self, pid: int, name: str) -> list[int]:
        return [each for each, found in descendants(pid) if found.startswith(name)]

    # The owner of the topic

    def _turn_owner(self) -> None:
        if not self._has_owner:
            return
        if self._owner is None:
            self._owner = Child(self._own)
        elif self._chance.random() < 0.15:
            self._end_owner()

    def _end_owner(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            is_owner = bool(owner.read(0))
            owner.close()
            self._report.add("owners killed", int(is_owner))

    def _own(self, say: Say) -> None:
        while True:
            try:
                cluster = embedlog.open(self._target, background=True)
                break
            except embedlog.DirectoryLocked:
                time.sleep(0.01)
        with cluster:
            if self._port:
                cluster.listen(port=self._port)
            say(b"owner")
            signal.pause()

    # Input and output

    def _make(self) -> None:
        with embedlog.open(self._source, durability="os") as cluster:
            cluster.create_topic("in", PARTITIONS)
            with cluster.producer(linger_ms=5) as producer:
                for number in range(ROWS):
                    value = b'{"id": %d}' % number
                    producer.send("in", value, key=b"%d" % number, partition=number % PARTITIONS)
        if self._kind not in _COMMITS:
            with embedlog.open(self._target) as cluster:
                cluster.create_topic("t", PARTITIONS)

    def _ids(self) -> list[int]:
        """Return the ids of the rows that a reader sees."""
        if self._port:
            return self._committed_ids()
        if self._kind != "topic":
            return [row["id"] for row in table_rows(self._kind, self._target)]
        found = []
        with embedlog.open_reader(self._target) as reader:
            for part in reader.snapshot([("t", number) for number in range(PARTITIONS)]):
                records = list(part.records())
                offsets = [record.offset for record in records]
                self._expect(offsets == list(range(len(offsets))), "offsets have gaps")
                found += [int(bytes(record.key or b"-1")) for record in records]
        return found

    def _committed_ids(self) -> list[int]:
        """Return the ids that readers with read_committed see while no driver runs."""
        self._end_owner()
        with embedlog.open(self._target) as cluster:
            with cluster.producer(transactional_id="killed") as fence:
                fence.init_transactions()  # ends an open transaction of a dead driver
            with cluster.consumer(
                isolation_level="read_committed", auto_offset_reset="earliest"
            ) as consumer:
                consumer.assign([("t", number) for number in range(PARTITIONS)])
                ends = consumer.end_offsets(consumer.assignment())
                found = []
                while any(consumer.position(each) < end for each, end in ends.items()):
                    found += [int(record.key) for record in consumer.poll(1.0)]
                return found

    def _look(self) -> None:
        ids = self._ids()
        self._report.add("looks")
        self._expect(len(ids) == len(set(ids)), f"{len(ids) - len(set(ids))} rows are doubled")

    def _check(self) -> None:
        ids = self._ids()
        lost, doubled = set(range(ROWS)) - set(ids), len(ids) - len(set(ids))
        self._expect(sorted(ids) == list(range(ROWS)), f"{len(lost)} lost, {doubled} doubled")
        self._report.add("rows", len(ids))

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self._is_broken = True
            self._report.fail(f"{self._name}: {what}")


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
