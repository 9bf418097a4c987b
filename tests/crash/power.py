"""Real power cuts: the image of an ext4 is copied while a writer is at work, level fsync.

The file system lies in an image behind a loop device. Unsynced data is only in the page cache of
the file system: a copy of the image is the disk after a power cut. The writer is killed first, so
that the copy shows one moment; some lives end without a cut, so that the next one works on unsynced
data in the page cache. The copy is mounted, its journal is replayed, and the next life checks every
acknowledged record and writes more.

One more disk fails at its syncs: its image lies on a file system without space for it. Acknowledged
records are in the image; no record is acknowledged whose sync failed.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable

import embedlog
from embedlog.runtime.os_files import OsFiles
from tests.crash import kill, mounts
from tests.crash.child import Child, Say
from tests.crash.report import Options, Report
from tests.crash.writer import Writer
from tests.support.sizes import size

CI_COUNT = size(3, full=10)
SOAK_COUNT = 200

_DISK_SIZE = 256 << 20
_OPENED = b"opened"
_LIVES_WITHOUT_CUT = 0.3
_THIN_SIZE = 24 << 20


def run(options: Options) -> Report:
    report = Report("power", options)
    why_not = mounts.why_not()
    if why_not:
        report.note(why_not)
        return report
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="crash-power-") as base:
        kill.warm(f"{base}/warm")
        disk = Disk(base, chance)
        while disk.cuts < options.count:
            disk.power_on(report)
        report.add("power cuts", disk.cuts)
        for number in range(max(1, options.count // 10)):
            os.mkdir(f"{base}/thin-{number}")
            _thin(report, f"{base}/thin-{number}")
    return report


class Disk:
    """An image, and its writers between the cuts."""

    def __init__(self, base: str, chance: random.Random) -> None:
        self._chance = chance
        self._image = f"{base}/image"
        self._mounted = f"{base}/mounted"
        os.mkdir(self._mounted)
        mounts.make_ext4(self._image, _DISK_SIZE)
        self._victim = kill.Victim(base, 0, "fsync")
        self._victim.directory = f"{self._mounted}/data"
        self._boot = 0
        self.cuts = 0

    def power_on(self, report: Report) -> None:
        """Run some lives of a writer, then cut the power."""
        self._boot += 1
        copy = f"{self._image}-{self._boot}"
        with mounts.loop_mounted(self._image, self._mounted):
            self._live(report)
            while self._chance.random() < _LIVES_WITHOUT_CUT:
                self._live(report)
            shutil.copyfile(self._image, copy)
        os.replace(copy, self._image)
        self.cuts += 1

    def _live(self, report: Report) -> None:
        victim, ledger = self._victim, self._victim.ledger
        child = Child(_life(victim, self._chance.getrandbits(32), f"boot-{self._boot}"))
        lines: list[bytes] = []
        started = time.monotonic()
        while _OPENED not in lines and not child.is_ended and time.monotonic() - started < 60:
            lines += child.read(1.0)
        deadline = time.monotonic() + self._chance.expovariate(10)
        while time.monotonic() < deadline and not child.is_ended:
            lines += child.read(max(0.0, deadline - time.monotonic()))
        child.kill()
        lines += child.rest()
        child.close()
        for line in lines:
            if line != _OPENED:
                ledger.apply(line)
        if "exit" in child.how:
            ledger.problems.append(f"it ended {child.how}")
        for problem in ledger.problems:
            report.fail(f"cut {self.cuts}: {problem}")
        ledger.problems.clear()
        report.add("lives")
        for figure, count in ledger.acknowledged.items():
            report.add(figure, count)
        ledger.acknowledged.clear()


def _life(victim: kill.Victim, seed: int, boot: str) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        _pretend_boot(boot)
        writer = Writer(victim.directory, victim.ledger, seed, say)
        writer.verify()
        say(_OPENED)
        writer.prepare()
        writer.run_threads(60.0)

    return work


def _pretend_boot(boot: str) -> None:
    """Invent a boot id: a cut restarts the machine, but the lives of a child share one boot."""
    make = OsFiles.__init__

    def __init__(files: OsFiles) -> None:
        make(files)
        files.boot_id = boot

    OsFiles.__init__ = __init__  # type: ignore[method-assign]


def _thin(report: Report, base: str) -> None:
    """Let two threads write until the disk below fails at a sync; then give the disk its space."""
    below, mounted = f"{base}/below", f"{base}/mounted"
    os.mkdir(below)
    os.mkdir(mounted)
    with mounts.tmpfs(below, _THIN_SIZE):
        mounts.make_ext4(f"{below}/image", 4 * _THIN_SIZE)
        with mounts.loop_mounted(f"{below}/image", mounted):
            child = Child(_until_failure(f"{mounted}/data"))
            said = child.rest()
            how = child.end()
            child.close()
            # A restart would find only the content of the image.
            mounts.run("mount", "-o", f"remount,size={8 * _THIN_SIZE}", below)
            shutil.copyfile(f"{below}/image", f"{base}/image")
    if how:
        report.fail(f"a thin disk: the writer ended {how}")
    acknowledged = {}
    for line in said:
        word, *rest = line.decode().split(" ")
        if word == "acked":
            acknowledged[int(rest[0])] = int(rest[1])
        elif word == "refused":
            report.add("sends refused by a disk that fails", int(rest[0]))
            report.add("logs poisoned by it", int(rest[1]))
        else:
            report.fail(f"a thin disk: {line.decode()}")
    report.add("acknowledged by a disk that fails", len(acknowledged))
    with mounts.loop_mounted(f"{base}/image", mounted):
        child = Child(_look(f"{mounted}/data", acknowledged))
        for line in child.rest():
            report.fail(f"a thin disk: {line.decode()}")
        how = child.end()
        child.close()
        if how:
            report.fail(f"a thin disk: the reader ended {how}")


def _value(number: int) -> bytes:
    return b"%d|" % number + bytes([number % 256]) * 100_000


def _until_failure(directory: str) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        cluster = embedlog.open(directory)
        cluster.create_topic("events", 1, config={"segment.bytes": 4 << 20})
        refused = [0, 0]

        def write(number: int) -> None:
            producer = cluster.producer(
                delivery_timeout_ms=1_500, request_timeout_ms=1_000, linger_ms=0
            )
            while refused[number % 2] < 3:
                try:
                    record = producer.send("events", _value(number)).result(30)
                    say(b"acked %d %d" % (number, record.offset))
                except embedlog.EmbedlogError:
                    refused[number % 2] += 1
                number += 2

        threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        poisoned = [each for each in cluster.health() if each.kind == "read-only"]
        say(b"refused %d %d" % (sum(refused), len(poisoned)))
        os._exit(0)

    return work


def _look(directory: str, acknowledged: dict[int, int]) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        _pretend_boot("after the failure")
        with embedlog.open(directory) as cluster, cluster.consumer(fetch_max_wait_ms=1) as consumer:
            key = embedlog.TopicPartition("events", 0)
            consumer.assign([key])
            consumer.seek_to_beginning()
            (end,) = consumer.end_offsets([key]).values()
            found = {}
            while consumer.position(key) < end:
                found.update((record.offset, record.value) for record in consumer.poll(100))
        for number, offset in acknowledged.items():
            if found.get(offset) != _value(number):
                say(b"record %d at %d was acknowledged, and is not there" % (number, offset))

    return work
