"""The n-th file call fails, for every n of a workload: no acknowledged record is lost.

The call fails with EIO, ENOSPC or EMFILE, if it can, or a write takes only some of its bytes; once,
or at all later calls until the disk is mended. Then:

- only the failing operation reports the failure, by a typed error;
- acknowledged records are read: before and after a kill and an open, after a loss of power as far
  as the level promises, and after a close and an open;
- no log refuses writes, unless a sync failed, or the disk had an I/O error with that log's files;
- every other log takes records again.
"""

from __future__ import annotations

from collections.abc import Iterable
from errno import EIO, EMFILE, ENOSPC
from itertools import count, product
from typing import TYPE_CHECKING, NamedTuple

from embedlog.errors import EmbedlogError
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles
from tests.crash import history as histories
from tests.crash.history import OPERATIONS, Healing, History
from tests.crash.promises import KILLED, LOST_POWER, Broken, Ending, check
from tests.crash.report import Options, Report
from tests.crash.simulated import log_of, open_cluster, silence
from tests.support.sizes import size

if TYPE_CHECKING:
    from embedlog.runtime.files import File

METADATA = "__cluster_metadata"
OFFSETS = "__consumer_offsets"
CI_COUNT = 1
"""Number of operations in a row; the last meets the fault."""
SOAK_COUNT = 2
CALL_STEP = size(6, full=1)
"""For a change every fourth file call fails; which ones differs with each way to fail."""

SYNCS = frozenset(("sync", "sync_directory"))
GROWING = frozenset(("write", "reserve", "create", "make_directory", "rename"))
OPENING = frozenset(("open", "create", "read", "list", "sync_directory"))
TOUCHING = GROWING | OPENING | frozenset(("sync", "truncate", "remove"))
SHORT_SIZE = 7

LIVE = Ending(KILLED.keeps, is_exact=False, is_live=True)
CUT_OFF = Ending(LOST_POWER.keeps, is_exact=False)
REOPENED = Ending(KILLED.keeps, is_exact=False)


class Kind(NamedTuple):
    """A way to fail: an errno, 0 for a short write, and the calls that can fail in this way."""

    name: str
    errno: int
    calls: frozenset[str]


KINDS = (
    Kind("EIO", EIO, TOUCHING),
    Kind("ENOSPC", ENOSPC, GROWING | SYNCS),
    Kind("EMFILE", EMFILE, OPENING),
    Kind("short write", 0, frozenset(("write",))),
)


class FaultyFiles(Healing):
    """A simulated disk on which the n-th call since `arm` fails; only calls of its kind count."""

    def __init__(self) -> None:
        super().__init__()
        self._kind: Kind | None = None
        self._left = 0
        self._forever = False
        self._creates = False
        self.failed: list[tuple[str, str]] = []
        """(call, path) of the failed calls."""

    def arm(self, kind: Kind, call: int, *, forever: bool) -> None:
        """Let call number `call` after this one fail, and with `forever` all later ones."""
        self._kind, self._left, self._forever = kind, call, forever
        self.failed.clear()

    def heal(self) -> None:
        """Let no more calls fail."""
        self._kind = None

    def open(self, path: str, *, create: bool = False) -> File:
        self._creates = create and path not in self.tree.contents()
        return super().open(path, create=create)

    def begin(self, call: str, path: str) -> int | None:
        limit = super().begin(call, path)
        if call == "open" and self._creates:
            call = "create"
        kind = self._kind
        if kind is None or call not in kind.calls:
            return limit
        self._left -= 1
        if self._left >= 0 or (self.failed and not self._forever):
            return limit
        self.failed.append((call, path))
        if kind.errno:
            raise OSError(kind.errno, "simulated failure", path)
        return SHORT_SIZE


def run(options: Options) -> Report:
    report = Report("faults", options)
    silence()
    step = 1 if options.soak else CALL_STEP
    for number, operations in enumerate(_workloads(options.count)):
        sweep(report, "os", operations, first=number, step=step)
        sweep(report, "fsync", operations, first=number + 1, step=step)
    return report


def sweep(
    report: Report, level: str, operations: tuple[str, ...], *, first: int = 0, step: int = 1
) -> None:
    """Let calls of the last operation fail in every way, each call or every `step`th."""
    for number, (kind, forever) in enumerate(product(KINDS, (False, True)), first):
        _sweep(report, level, operations, kind, calls=count(number % step, step), forever=forever)


def _workloads(length: int) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for _ in range(length):
        found = [(*before, operation) for before in found for operation in OPERATIONS]
    return found


def _sweep(
    report: Report,
    level: str,
    operations: tuple[str, ...],
    kind: Kind,
    *,
    calls: Iterable[int],
    forever: bool,
) -> None:
    for call in calls:
        disk = FaultyFiles()
        history = History(disk, level, tolerated=True)
        for operation in operations[:-1]:
            histories.prepare(history, operation)
            histories.perform(history, operation)
        histories.prepare(history, operations[-1])
        disk.arm(kind, call, forever=forever)
        where = f"{level} {', '.join(operations)}: {kind.name}{' for ever' if forever else ''}"
        try:
            histories.perform(history, operations[-1])
            disk.heal()
            if not disk.failed:
                return
            report.add("faults")
            _check(history, disk.failed, kind)
        except Exception as error:
            first = " ".join(disk.failed[0]) if disk.failed else "no fault"
            report.fail(f"{where}, call {call}, {first}: {type(error).__name__}: {error}")
            if not disk.failed:
                return


def _check(history: History, failed: list[tuple[str, str]], kind: Kind) -> None:
    cluster = history.cluster
    poisoned = set()
    for log in cluster.broker().core.log_manager.logs():
        if log.failure is not None:
            poisoned.add(log.topic_partition.topic)
            is_own = any(
                (path.startswith(log.directory) and (kind.errno == EIO or call in SYNCS))
                or (kind.errno == EIO and path.count("/") < 2)  # shared by all logs
                for call, path in failed
            )
            if not is_own:
                raise Broken(f"{log.topic_partition} refuses writes: {log.failure}")
    check(history, cluster, LIVE._replace(tells_offsets=not poisoned & {METADATA, OFFSETS}))
    if kind.errno == EIO:
        # A log that could not be created is missing until the next open.
        poisoned |= {path.split("/")[1].rpartition("-")[0] for _, path in failed if "-0" in path}
    history.tolerated = False
    if METADATA in poisoned:
        # Without it no producer id can be assigned, and no change of the metadata be recorded.
        history.producer = cluster.producer(enable_idempotence=False)
    for topic, promise in history.topics.items():
        if promise.existence == "there" and topic not in poisoned:
            history.send(topic, history.value(), key=b"on")
    _check_reopened(history, history.disk.survivor())
    for image in history.disk.crash_images(seeded(1), 2):
        check(history, open_cluster(image, history.level), CUT_OFF)
    history.tolerated = True
    try:
        history.producer.close()
        cluster.close()
    except EmbedlogError:
        if not poisoned:
            raise
    _check_reopened(history, history.disk.survivor())


def _check_reopened(history: History, disk: SimFiles) -> None:
    cluster = open_cluster(disk, history.level)
    check(history, cluster, REOPENED)
    for topic in history.topics:
        if cluster.broker().core.controller.image.topics_by_name.get(topic) is not None:
            log = log_of(cluster, topic)
            if log.failure is not None:
                raise Broken(f"{log.topic_partition} refuses writes after an open: {log.failure}")
