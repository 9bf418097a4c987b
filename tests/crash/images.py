"""The disk after a crash at every file call of a workload: what is promised is there, no more.

After each call that changes the simulated disk, while the workload goes on, the disk is copied as
a process that died there leaves it, and as a loss of power leaves it: unsynced sectors kept, lost,
torn, or written out of order, names that were not synced kept or lost. Each copy that is new is
opened, and compared with what the history has been promised at that moment. Some openings crash in
turn, at a random call, and are opened again; some are written to, and opened once more.

Every workload of up to two operations (three in the soak) is tried at both levels, then random
longer ones until there are as many images as asked for. In CI the calls of the second operation
take turns: one image each, of the kinds that each call of the first has all of.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from multiprocessing import get_context
from typing import TYPE_CHECKING
from unittest.mock import patch

from embedlog.runtime import locks
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from embedlog.testing.sim_files import SimFile, SimNode
from tests.crash import history as histories
from tests.crash.history import OPERATIONS, History
from tests.crash.promises import KILLED, LOST_POWER, Broken, Ending, check
from tests.crash.report import Options, Report
from tests.crash.simulated import OWN_PRODUCERS, Shown, log_of, open_cluster, shown, silence
from wire.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.cluster import Cluster
    from embedlog.runtime.files import Bytes, File
    from embedlog.runtime.memory_files import MemoryNode
    from embedlog.storage.log import Log
    from tests.crash.oracle import OracleRecord

CI_COUNT = 20_000
SOAK_COUNT = 10_000_000

POWER_IMAGES = 3
"""At one call: all that is unsynced is lost, nothing is, and something in between."""
RANDOM_LENGTH_MAX = 8
CRASHED_OPENS = 12
"""One image in so many is opened by a process that crashes while it recovers."""
CALLS_MAX = 10_000
"""File calls of an open and a look at everything; more is a program that does not end."""
WRITTEN_TO = 6
"""One in so many is written to, and opened again."""


class WatchedFile(SimFile):
    """A file that shows its watcher half of a write, too."""

    __slots__ = ("_watched",)

    def __init__(self, node: SimNode, files: WatchedFiles, path: str) -> None:
        super().__init__(node, files, path)
        self._watched = files

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        if self._watched.changed is not None:
            whole = b"".join(buffers)
            self._node.write([whole[: len(whole) // 2]], position)
            self._watched.changed("half a write")
        return super().write(buffers, position)


class WatchedFiles(SimFiles):
    """A simulated disk that calls `changed` after each call that may have changed it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[str], None] | None = None

    def end(self) -> None:
        super().end()
        if self.changed is not None:
            self.changed(" ".join(self.trace[-1]))

    def _handle(self, node: MemoryNode, path: str) -> File:
        assert isinstance(node, SimNode)
        return WatchedFile(node, self, path)


def run(options: Options) -> Report:
    """Every process tries its share of the short workloads, and random ones of its own seed."""
    report = Report("images", options)
    if options.processes == 1:
        _run(report, 0)
        return report
    shares = [options._replace(count=options.count // options.processes)] * options.processes
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        for part in pool.map(_share, shares, range(options.processes)):
            report.take_in(part)
    return report


def _share(options: Options, number: int) -> Report:
    report = Report("images", options)
    _run(report, number)
    return report


def _run(report: Report, number: int) -> None:
    """Without checks of the locks' order: an image is opened under a call of another cluster."""
    options = report.options
    silence()
    with patch.object(locks, "checked_lock", None):
        images = Images(report, is_thorough=options.soak)
        short = _short_workloads(3 if options.soak else 2)
        for level, operations in islice(short, number, None, options.processes):
            images.run(level, operations)
        chance = random.Random(f"{options.seed} {number}")
        while report.figures["images"] < options.count:
            length = chance.randrange(3, RANDOM_LENGTH_MAX + 1)
            operations = tuple(chance.choice(list(OPERATIONS)) for _ in range(length))
            images.run(chance.choice(("os", "fsync")), operations, share=0.2)


def _short_workloads(length_max: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every (level, operations) of up to so many operations."""
    for length in range(length_max + 1):
        for operations in product(OPERATIONS, repeat=length):
            for level in ("os", "fsync"):
                yield level, operations


class Images:
    """Runs workloads and checks what crashes leave of them."""

    def __init__(self, report: Report, *, is_thorough: bool) -> None:
        """`is_thorough`: every call gets images of all kinds, whatever the workload."""
        self._report = report
        self._is_thorough = is_thorough
        self._chance = random.Random(report.options.seed)
        self._sectors = seeded(report.options.seed)
        self._where = ""
        self._share = 1.0
        self._turn = 0
        self._takes_turns = False
        self._seen: set[object] = set()
        self._history: History
        report.add("images", 0)

    def run(self, level: str, operations: tuple[str, ...], *, share: float = 0) -> None:
        """Run one workload. Of a short one only the last operation is watched, as those before it
        are a workload of their own; of others `share` of the calls of all."""
        self._report.add("workloads")
        self._share = share or 1.0
        self._takes_turns = len(operations) > 1 and not self._is_thorough
        self._seen.clear()
        disk = WatchedFiles()
        if not operations:
            self._history = History(SimFiles(), level)  # which promises nothing
            self._where = f"{level}, the first open"
            disk.changed = lambda call: self._look(disk, call)
        history = History(disk, level)
        disk.changed = None
        self._history = history
        for number, operation in enumerate(operations):
            histories.prepare(history, operation)
            if share or number == len(operations) - 1:
                self._where = f"{level} {', '.join(operations[: number + 1])}"
                disk.changed = lambda call: self._look(disk, call)
            histories.perform(history, operation)
            if disk.changed is not None:
                disk.changed("the last call")
            disk.changed = None

    def _look(self, disk: SimFiles, call: str) -> None:
        if self._share < 1 and self._chance.random() > self._share:
            return
        self._check_live(call)
        self._turn += 1
        turn = self._turn % (POWER_IMAGES + 1)
        if call == "half a write":
            if not self._takes_turns or turn == 0:
                self._check_new(disk.survivor(), KILLED, "killed in a write")
            return
        if not self._takes_turns or turn == POWER_IMAGES:
            self._check_new(disk.survivor(), KILLED, f"killed after {call}")
        if not self._takes_turns or turn < POWER_IMAGES:
            for number, image in enumerate(disk.crash_images(self._sectors, POWER_IMAGES)):
                if not self._takes_turns or number == turn:
                    self._check_new(image, LOST_POWER, f"power lost after {call}, image {number}")

    def _check_live(self, call: str) -> None:
        """Nothing that a loss of power may take is shown where a topic promises more."""
        for log in self._history.cluster.broker.log_manager.logs():
            is_shown = log.offsets.high_watermark > log.durability.synced_offset
            if log.config.durability == "fsync" and is_shown and log.failure is None:
                self._report.fail(
                    f"{self._where}: {call}: {log.topic_partition} shows records up to "
                    f"{log.offsets.high_watermark}, synced are those up to "
                    f"{log.durability.synced_offset}"
                )

    def _check_new(self, image: SimFiles, ending: Ending, what: str) -> None:
        key = ending, self._history.version, hash(tuple(image.tree.contents().items()))
        if key in self._seen:
            return
        self._seen.add(key)
        number = self._report.figures["images"]
        try:
            if number % CRASHED_OPENS == 0:
                self._crash_opening(image, ending)
            self._check(image, ending, writes=number % WRITTEN_TO == 0)
        except SimulatedCrash:
            self._report.fail(f"{self._where}: {what}: does not end")
        except Exception as error:
            self._report.fail(f"{self._where}: {what}: {type(error).__name__}: {error}")

    def _check(self, image: SimFiles, ending: Ending, *, writes: bool) -> None:
        self._report.add("images")
        image.crash(image.calls + CALLS_MAX)
        cluster = open_cluster(image, self._history.level)
        found = check(self._history, cluster, ending)
        if writes:
            _go_on(self._history.level, image, cluster, found)

    def _crash_opening(self, image: SimFiles, ending: Ending) -> None:
        """Open a copy in a process that crashes meanwhile, and check what that one leaves."""
        level = self._history.level
        whole = image.survivor()
        open_cluster(whole, level)
        dying = image.survivor()
        dying.crash(self._chance.randrange(whole.calls), after=self._chance.random() < 0.5)
        try:
            open_cluster(dying, level)
        except SimulatedCrash:
            self._report.add("crashed recoveries")
        self._check(dying.survivor(), ending, writes=False)
        for second in dying.crash_images(self._sectors, 2):
            self._check(second, LOST_POWER, writes=False)


def _go_on(level: str, image: SimFiles, cluster: Cluster, found: dict[str, Shown]) -> None:
    """Write to every topic; the last record, sent again, is known; another open shows the same."""
    producer = cluster.producer()
    for name, seen in found.items():
        log = log_of(cluster, name)
        if seen.records:
            _resend(log, seen.records[-1])
        offset = producer.send(name, b"on", key=b"on", partition=0).result().offset
        if offset != seen.end:
            raise Broken(f"{name} goes on at {offset}, it ended at {seen.end}")
    again = open_cluster(image.survivor(), level)
    for name, seen in found.items():
        now = shown(log_of(again, name))
        if now.records[:-1] != seen.records or now.records[-1].value != b"on":
            raise Broken(f"{name} showed {seen.records}, and {now.records} at the next open")


def _resend(log: Log, record: OracleRecord) -> None:
    producer_id, epoch, sequence = record.producer
    if sequence < 0 or record.is_control or producer_id >= OWN_PRODUCERS:
        return
    batch = build_batch(
        [record.value],
        keys=[record.key],
        timestamps=record.timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    with log.lock:
        leader_epoch, now_ms = max(0, log.epochs.latest), record.timestamp
        info = log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=now_ms)
    if not info.duplicate:
        raise Broken(f"{log.topic_partition} took the batch of {record} twice")
