"""A real disk gets full, or the process runs out of descriptors, and later there is room again.

No log is poisoned, stored records can be read meanwhile, retention and the deletion of topics free
space, no call raises an untyped error, and writing resumes: on tmpfs and on ext4, at both levels.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable

import embedlog
from tests.crash import mounts
from tests.crash.child import Child, Say
from tests.crash.report import Options, Report

CI_COUNT = 6
"""Rounds; six rounds contain every kind at both levels."""
SOAK_COUNT = 600

KINDS = ("tmpfs", "ext4", "descriptors")
LEVELS = ("os", "fsync")

_DISK_SIZE = 24 << 20
_RESUME_S = 60.0
_PARTITIONS = 300  # more than the number of files that stay open
_IMPATIENT = {"delivery_timeout_ms": 1_500, "request_timeout_ms": 1_000, "linger_ms": 0}


def run(options: Options) -> Report:
    report = Report("disks", options)
    why_not = mounts.why_not()
    if why_not:
        report.note(why_not)
    for number in range(options.count):
        kind = KINDS[number % len(KINDS)]
        level = LEVELS[number // len(KINDS) % len(LEVELS)]
        with tempfile.TemporaryDirectory(prefix="crash-disks-") as base:
            if kind == "descriptors":
                _attend(report, f"{kind} at {level}", _descriptors(f"{base}/data", level))
            elif not why_not:
                _mounted(report, base, kind, level)
    return report


def _mounted(report: Report, base: str, kind: str, level: str) -> None:
    directory = f"{base}/mounted"
    os.mkdir(directory)
    if kind == "tmpfs":
        context = mounts.tmpfs(directory, _DISK_SIZE)
    else:
        mounts.make_ext4(f"{base}/image", _DISK_SIZE)
        context = mounts.loop_mounted(f"{base}/image", directory)
    with context:
        _attend(report, f"{kind} at {level}", _full(directory, level))


def _attend(report: Report, name: str, work: Callable[[Say], None]) -> None:
    child = Child(work)
    for line in child.rest():
        word, _, rest = line.decode().partition(" ")
        if word == "broken":
            report.fail(f"{name}: {rest}")
        else:
            report.add(rest, int(word))
    how = child.end()
    child.close()
    if how:
        report.fail(f"{name}: it ended {how}")
    report.add(f"rounds of {name}")


class Host:
    """An application with a cluster, which runs on after every error."""

    def __init__(self, directory: str, level: str, partitions: int, say: Say) -> None:
        self.directory, self.level = directory, level
        self.say = say
        self.cluster = embedlog.open(directory, durability=level)
        config = {"segment.bytes": 1 << 20, "file.delete.delay.ms": 0, "retention.bytes": 3 << 20}
        self.cluster.create_topic("events", partitions, config=config)
        self.cluster.create_topic("doomed", 1)
        self.producer = self.cluster.producer(**_IMPATIENT)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.sent = 0

    def broken(self, text: str) -> None:
        self.say(f"broken {text}".encode().replace(b"\n", b" ")[:3000])

    def send(self, partition: int, size: int, topic: str = "events") -> bool:
        """Send a record; return whether it was acknowledged. A failure must be a typed error."""
        self.sent += 1
        value = b"%d|" % self.sent + os.urandom(size)
        try:
            offset = self.producer.send(topic, value, partition=partition).result(30).offset
        except embedlog.EmbedlogError:
            return False
        if topic == "events":
            self.acknowledged[partition, offset] = value
        return True

    def typed(self, what: str, call: Callable[[], object]) -> None:
        """Make a call; it may raise only typed errors, and no OSError."""
        try:
            call()
        except embedlog.EmbedlogError:
            self.say(f"1 refusals of {what}".encode())
        except BaseException as error:
            self.broken(f"{what} raised {error!r}")

    def read(self, partitions: list[int], when: str) -> None:
        """Check that readers get every acknowledged record, and nothing else."""
        with self.cluster.consumer(fetch_max_wait_ms=1) as consumer:
            for partition in partitions:
                key = embedlog.TopicPartition("events", partition)
                consumer.assign([key])
                consumer.seek_to_beginning()
                (start,) = consumer.beginning_offsets([key]).values()
                (end,) = consumer.end_offsets([key]).values()
                found: dict[int, bytes] = {}
                deadline = time.monotonic() + _RESUME_S
                while consumer.position(key) < end and time.monotonic() < deadline:
                    found.update((r.offset, r.value) for r in consumer.poll(100))
                for (where, offset), value in self.acknowledged.items():
                    if where == partition and offset >= start and found.get(offset) != value:
                        self.broken(f"{when}: record {offset} of {partition} is not read")
        self.say(b"%d partitions read %s" % (len(partitions), when.encode()))

    def resume(self, partitions: list[int], size: int) -> None:
        """After the disk has room: check that every partition takes records and health is clean."""
        deadline = time.monotonic() + _RESUME_S
        for partition in partitions:
            while not self.send(partition, size):
                if time.monotonic() > deadline:
                    self.broken(f"partition {partition} does not take records again")
                    break
        for degradation in self.cluster.health():
            if degradation.kind in {"read-only", "damaged", "uncleanable"}:
                self.broken(f"{degradation}")
        self.read(partitions, "afterwards")
        self.producer.close()
        self.cluster.close()
        self.cluster = embedlog.open(self.directory, durability=self.level)
        self.read(partitions, "when opened again")
        self.cluster.close()
        self.say(b"%d acknowledged" % len(self.acknowledged))


def _full(root: str, level: str) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        host = Host(f"{root}/data", level, 1, say)
        for _ in range(6 * 8):
            host.send(0, 128 << 10)
        host.send(0, 1_000_000, "doomed")
        fill(f"{root}/filler")
        refused = sum(not host.send(0, 64 << 10) for _ in range(24))
        say(b"%d sends refused by a full disk" % refused)
        if not refused:
            host.broken("the disk was not full")
        host.read([0], "meanwhile")
        host.typed("maintain", host.cluster.maintain)
        fill(f"{root}/filler-2")
        with host.cluster.admin() as admin:
            host.typed("delete_records", lambda: admin.delete_records({("events", 0): 5}).check())
            host.typed("create_topic", lambda: host.cluster.create_topic("another", 1))
            before = os.statvfs(root).f_bavail
            host.typed("delete_topics", lambda: admin.delete_topics(["doomed"]).check())
        if "doomed" not in host.cluster.topics and os.statvfs(root).f_bavail <= before:
            host.broken("the deletion of a topic freed no space")
        fill(f"{root}/filler-3")
        host.read([0], "meanwhile")
        for name in ("filler", "filler-2", "filler-3"):
            os.unlink(f"{root}/{name}")
        host.resume([0], 64 << 10)

    return work


def fill(path: str) -> None:
    """Fill the disk."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(b"z" * size)
            except OSError:
                continue


def _descriptors(directory: str, level: str) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        host = Host(directory, level, _PARTITIONS, say)
        chosen = list(range(_PARTITIONS))
        for partition in chosen:
            host.send(partition, 10)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        futures = [host.producer.send("events", b"refused or not", partition=p) for p in chosen]
        refused = 0
        for future in futures:
            try:
                future.result(30)
            except embedlog.EmbedlogError:
                refused += 1
        say(b"%d sends refused without descriptors" % refused)
        host.typed("maintain", host.cluster.maintain)
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        host.resume(chosen, 10)

    return work
