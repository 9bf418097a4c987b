"""The disk after a crash at every file call of a workload: it holds the promised state.

After each call that changes the simulated disk, the program copies the disk as a process that dies
there leaves it, and as a loss of power leaves it: unsynced sectors are kept, lost, torn, or written
out of order, and unsynced names are kept or lost. It opens each new copy (an image) and compares it
with the history's promises of that moment. Some openings crash themselves at a random call, and are
opened again; some images are written to, and opened once more.

Every workload of up to two operations (three in the soak) is tried at both levels, then longer
random ones until the wanted number of images is reached. In CI each call of the second operation
gets only one image: the calls take turns through the kinds that each call of the first operation
gets all of. Of a random workload, only operations beyond the length of the systematic ones are
watched.

An image counts once, however many workloads leave it and whatever their promises: the content of
the disk, the level of its opening, and whether power was lost.
"""

from __future__ import annotations

import gc
import random
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import count, product
from multiprocessing import get_context
from typing import TYPE_CHECKING
from unittest.mock import patch

from embedlog.runtime import locks
from embedlog.runtime.memory_files import MemoryDirectory
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from embedlog.testing.sim_files import SimFile, SimNode
from tests.crash import history as histories
from tests.crash.history import OPERATIONS, History
from tests.crash.progress import Progress
from tests.crash.promises import KILLED, LOST_POWER, Broken, Ending, check
from tests.crash.report import Options, Report
from tests.crash.simulated import OWN_PRODUCERS, Shown, log_of, open_cluster, shown, silence
from tests.support.sizes import size
from wire.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.cluster.cluster import Cluster
    from embedlog.runtime.files import Bytes, File
    from embedlog.runtime.memory_files import MemoryNode
    from embedlog.storage.log.log import Log
    from tests.crash.oracle import OracleRecord

Workload = tuple[str, tuple[str, ...]]
"""Level and operations."""
Tried = tuple[Report, "array[int]"]
"""The report of a workload, and the digests of the images that were checked."""

CI_COUNT = size(4_000, full=20_000)
SOAK_COUNT = 10_000_000
PAIR_STEP = size(4, full=1)
"""For a change every fourth pair of operations is tried; each is first and second several times."""

POWER_IMAGES = 3
"""At one call: an image without unsynced data, one with all of it, and one with a random part."""
RANDOM_LENGTH_MAX = 8
RANDOM_SHARE = 0.2
"""Share of the calls of a random workload that get an image."""
AHEAD = 4
"""Workloads waiting for a process, as a multiple of the number of processes."""
CRASHED_OPENS = 12
"""One image in this number is opened by a process that crashes during recovery."""
CALLS_MAX = 10_000
"""Limit of file calls for an open and a look at everything: a program with more does not end."""
WRITTEN_TO = 6
"""One image in this number is written to, and opened again."""


class WatchedFile(SimFile):
    """A file that also shows its observer half of each write."""

    __slots__ = ("_watched",)

    def __init__(self, node: SimNode, files: WatchedFiles, path: str) -> None:
        super().__init__(node, files, path)
        self._watched = files

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        if self._watched.changed is not None:
            whole = b"".join(buffers)
            self._node.write([whole[: len(whole) // 2]], position)
            self._watched.tell("half a write")
        return super().write(buffers, position)


class WatchedFiles(SimFiles):
    """A simulated disk that calls `changed` after each call that may have changed it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[str], None] | None = None

    def end(self) -> None:
        super().end()
        self.tell(" ".join(self.trace[-1]))

    def tell(self, call: str) -> None:
        """Call `changed`, which opens other clusters in the middle of a call of this one."""
        changed = self.changed
        if changed is not None:
            as_caller(lambda: changed(call))

    def _handle(self, node: MemoryNode, path: str) -> File:
        assert isinstance(node, SimNode)
        return WatchedFile(node, self, path)


def run(options: Options) -> Report:
    """Try all short workloads, then random ones until the wanted number of images is reached."""
    progress = Progress("images", options)
    report = progress.report
    options = report.options
    tries = _in_this_process if options.processes == 1 else _in_processes
    with closing(tries(options, progress.workloads)) as tried:
        while not progress.is_over():
            are_short_tried = progress.workloads >= len(_short_workloads(options))
            if are_short_tried and report.figures["images"] >= options.count:
                break
            progress.add(*next(tried))
    progress.save()
    gc.unfreeze()
    return report


def _in_this_process(options: Options, first: int) -> Iterator[Tried]:
    for number in count(first):
        yield try_workload(options, number)


def _in_processes(options: Options, first: int) -> Iterator[Tried]:
    """Yield the same, in the same order, from several processes."""
    with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
        tried = deque[Future[Tried]]()
        try:
            for number in count(first):
                tried.append(pool.submit(try_workload, options, number))
                if len(tried) > AHEAD * options.processes:
                    yield tried.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def try_workload(options: Options, number: int) -> Tried:
    """Try one workload of the seed's sequence; it depends on no other workload.

    Lock order is not checked: an image is opened during a call of another cluster.
    """
    silence()
    # Freeze the objects of now. The garbage collector runs often for clusters, and would otherwise
    # examine these objects each time: a tenth of the whole time.
    gc.collect()
    gc.freeze()
    report = Report("images", options)
    images = Images(report, is_thorough=options.soak, number=number)
    short = _short_workloads(options)
    with patch.object(locks, "checked_lock", None):
        if number < len(short):
            images.run(*short[number])
        else:
            level, operations = _random_workload(options, number)
            images.run(level, operations, first=_short_length(options), share=RANDOM_SHARE)
    return report, images.digests


def _short_length(options: Options) -> int:
    return 3 if options.soak else 2


@cache
def _short_workloads(options: Options) -> list[Workload]:
    """Return every short (level, operations): of pairs every `PAIR_STEP`th, in a soak all."""
    return [
        (level, operations)
        for length in range(_short_length(options) + 1)
        for operations in _sequences(length)[:: 1 if options.soak or length < 2 else PAIR_STEP]
        for level in ("os", "fsync")
    ]


def _sequences(length: int) -> list[tuple[str, ...]]:
    return list(product(OPERATIONS, repeat=length))


def _random_workload(options: Options, number: int) -> Workload:
    chance = random.Random(f"{options.seed} {number}")
    length = chance.randrange(_short_length(options) + 1, RANDOM_LENGTH_MAX + 1)
    operations = tuple(chance.choice(list(OPERATIONS)) for _ in range(length))
    return chance.choice(("os", "fsync")), operations


class Images:
    """Runs workloads and checks the images of their crashes."""

    def __init__(self, report: Report, *, is_thorough: bool, number: int = 0) -> None:
        """`is_thorough`: every call gets images of all kinds, whatever the workload. `number` gives
        other random numbers for the same seed.
        """
        self.digests = array("Q")
        """One digest for every image that was opened and compared."""
        self._report = report
        self._is_thorough = is_thorough
        self._chance = random.Random(f"{report.options.seed} {number}")
        self._sectors = seeded(self._chance.getrandbits(62))
        self._where = ""
        self._share = 1.0
        self._turn = 0
        self._takes_turns = False
        self._seen: set[object] = set()
        self._history: History

    def run(
        self, level: str, operations: tuple[str, ...], *, first: int = -1, share: float = 1
    ) -> None:
        """Run one workload. Observe the operations from number `first` on, by default only the last
        one, because shorter workloads cover the others; `share` of their calls get an image.
        """
        self._report.add("workloads")
        self._share = share
        watched = range(len(operations))[first:]
        self._takes_turns = len(operations) > 1 and not self._is_thorough
        self._seen.clear()
        disk = WatchedFiles()
        if not operations:
            self._history = History(SimFiles(), level)  # no promises
            self._where = f"{level}, the first open"
            disk.changed = lambda call: self._look(disk, call)
        history = History(disk, level)
        disk.changed = None
        self._history = history
        for number, operation in enumerate(operations):
            histories.prepare(history, operation)
            if number in watched:
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
        """Check that readers of a topic see no record that a loss of power may take, if its level
        promises more.
        """
        for log in self._history.cluster.broker().core.log_manager.logs():
            is_shown = log.offsets.high_watermark > log.durability.synced_offset
            if log.config.durability == "fsync" and is_shown and log.failure is None:
                self._report.fail(
                    f"{self._where}: {call}: {log.topic_partition} shows records up to "
                    f"{log.offsets.high_watermark}, synced up to "
                    f"{log.durability.synced_offset}"
                )

    def _check_new(self, image: SimFiles, ending: Ending, what: str) -> None:
        key = ending, self._history.version, self._digest(image)
        if key in self._seen:
            return
        self._seen.add(key)
        number = len(self.digests)
        copy = image.survivor() if number % CRASHED_OPENS == 0 else None
        try:
            calls = self._check(image, ending, writes=number % WRITTEN_TO == 0)
            if copy is not None:
                self._crash_opening(copy, ending, calls)
        except SimulatedCrash:
            self._report.fail(f"{self._where}: {what}: does not end")
        except Exception as error:
            self._report.fail(f"{self._where}: {what}: {type(error).__name__}: {error}")

    def _check(self, image: SimFiles, ending: Ending, *, writes: bool) -> int:
        """Open an image and compare it; return the number of calls of the open."""
        self._report.add("images opened")
        self.digests.append(self._digest(image))
        image.crash(image.calls + CALLS_MAX)
        cluster = open_cluster(image, self._history.level)
        calls = image.calls
        found = check(self._history, cluster, ending)
        if writes:
            _go_on(self._history.level, image, cluster, found)
        return calls

    def _crash_opening(self, image: SimFiles, ending: Ending, calls: int) -> None:
        """Open an image in a process that crashes meanwhile, and check the image that
        this leaves.
        """
        image.crash(self._chance.randrange(calls), after=self._chance.random() < 0.5)
        try:
            open_cluster(image, self._history.level)
        except SimulatedCrash:
            self._report.add("crashed recoveries")
        self._check(image.survivor(), ending, writes=False)
        for second in image.crash_images(self._sectors, 2):
            self._check(second, LOST_POWER, writes=False)

    def _digest(self, image: SimFiles) -> int:
        """Return a digest of everything that the next process finds, and of its kind of open."""
        whole = blake2b(f"{self._history.level} {image.boot_id}".encode(), digest_size=8)

        def visit(directory: MemoryDirectory) -> None:
            for name, entry in sorted(directory.entries.items()):
                whole.update(name.encode())
                if isinstance(entry, MemoryDirectory):
                    whole.update(b"/")
                    visit(entry)
                    whole.update(b"//")
                else:
                    assert isinstance(entry, SimNode)
                    whole.update(_content_digest(entry.content()))

        visit(image.tree.root)
        return int.from_bytes(whole.digest(), "big")


@lru_cache(512)
def _content_digest(content: bytes) -> bytes:
    return b":" + blake2b(content, digest_size=16).digest()


def _go_on(level: str, image: SimFiles, cluster: Cluster, found: dict[str, Shown]) -> None:
    """Write to every topic. A repeated last record is recognised; another open shows the same."""
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
