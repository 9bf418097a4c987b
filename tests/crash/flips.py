"""Every bit of a small directory is flipped, one at a time: it is reported, or changes nothing.

A report is a typed error at the first use of the file's content; this error or the cluster's health
names the file. The program opens a directory that was closed cleanly, and one whose process was
killed, at both levels. Both directories are complete, so no record may get lost: no flip is a torn
write. In the closed one `verify` finds each flip, except in bytes that no rule can check: see
`_is_free`.

The space that a killed process had reserved is zeros. Of these, one bit in `RESERVED_STEP` is
flipped; of everything else, every bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from embedlog.client.errors import RecordUnreadable
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError
from embedlog.storage.degradation import CUT, QUARANTINED
from embedlog.storage.log.gaps import read_gaps_below
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles, SimulatedCrash
from tests.crash.oracle import parse_segment
from tests.crash.report import Options, Report
from tests.crash.simulated import (
    GROUP,
    append_transaction,
    log_of,
    open_cluster,
    shown,
    silence,
)
from tests.support.sizes import size

if TYPE_CHECKING:
    from embedlog.storage.log.log import Log

CI_COUNT = size(350, full=3_500)
"""Bits flipped in each of the four directories, evenly spread: the full size flips about every
sixth, the soak every bit, and of larger directories.
"""
SOAK_COUNT = 1 << 30

_UNVERIFIED = {".lock", "meta.properties", "replication-offset-checkpoint"}
FOREIGN = "data/photos-to-delete"
RESERVED_STEP = 211
CALLS_MAX = 5_000
"""Limit of file calls for an open and a look at everything: a program with more does not end."""
POLLS_MAX = 20


class Told(NamedTuple):
    """A typed error instead of an answer."""

    error: EmbedlogError

    def names(self, path: str) -> bool:
        """Return whether the error, or one of its causes, names the file.

        A client that got a damaged batch knows the partition and the offset instead.
        """
        error: BaseException | None = self.error
        _, partition, *names = path.split("/")
        said = path if names else partition
        while error is not None:
            if said in str(error):
                return True
            if isinstance(error, RecordUnreadable) and partition in str(error):
                return True
            error = error.__cause__
        return False


def run(options: Options) -> Report:
    report = Report("flips", options)
    silence()
    for level in ("os", "fsync"):
        for is_clean in (True, False):
            disk = _directory(level, is_clean=is_clean, size=10 if options.soak else 1)
            _flip_all(report, disk, level, "clean" if is_clean else "killed")
    return report


def flip_files(report: Report, level: str, fragment: str, *, is_clean: bool) -> None:
    """Flip only bits of files with `fragment` in their path."""
    disk = _directory(level, is_clean=is_clean, size=1)
    _flip_all(report, disk, level, "clean" if is_clean else "killed", fragment)


def _flip_all(report: Report, disk: SimFiles, level: str, ending: str, fragment: str = "") -> None:
    expected = _state(disk.survivor(), level)
    del expected["health"]
    if expected["foreign"] is None:
        report.fail(f"{ending} {level}: {FOREIGN} disappeared without any flip")
    untold = [name for name, value in expected.items() if isinstance(value, Told)]
    assert not untold, expected
    bits = [(path, bit) for path, bit in _bits(disk) if fragment in path]
    step = -(-len(bits) // report.options.count)
    for path, bit in bits[report.options.seed % step :: step]:
        _flip(report, disk, level, ending, path, bit, expected)


def _flip(
    report: Report,
    disk: SimFiles,
    level: str,
    ending: str,
    path: str,
    bit: int,
    expected: dict[str, object],
) -> None:
    where = f"{ending} {level}, {path} bit {bit}"
    flipped = disk.survivor()
    file = flipped.open(path)
    file.write([bytes([file.view(bit // 8, 1)[0] ^ 1 << bit % 8])], bit // 8)
    file.sync()
    report.add("bits")
    is_found = any(DirectoryCheck(flipped, "data", lambda _: None).findings())
    if is_found:
        report.add("found by verify")
    elif ending == "clean" and not _is_free(disk, path, bit // 8):
        report.fail(f"{where}: not found by verify")
    try:
        found = _state(flipped, level)
    except SimulatedCrash:
        report.fail(f"{where}: does not end")
        return
    except Exception as error:
        report.fail(f"{where}: untyped {type(error).__name__}: {error}")
        return
    health = found.pop("health", [])
    if found == expected:
        report.add("harmless")
        return
    different = {name for name in expected | found if expected.get(name) != found.get(name)}
    if isinstance(found["open"], Told):
        different = {"open"}
    untold = [name for name in different if not isinstance(found.get(name), Told)]
    if untold == ["records of c"] and _is_cleaned_offset(disk, path, bit // 8):
        report.add("offsets between gaps of compaction moved unnoticed")
    elif untold:
        name = min(untold)
        report.fail(f"{where}: not reported, {name} was {expected.get(name)}, is {found.get(name)}")
    elif any(path in each for each in health) or any(
        isinstance(told := found[name], Told) and told.names(path) for name in different
    ):
        report.add("told")
    else:
        report.fail(f"{where}: reported without its name: {found[min(different)]}")


def _is_free(disk: SimFiles, path: str, position: int) -> bool:
    """Return whether no rule of `verify` checks the byte.

    The owner and the ids are free names. High watermarks are stored only once. An entry of the time
    index may name any record of its batch.
    """
    is_named = path.removeprefix("data/") in _UNVERIFIED or path.endswith(".timeindex")
    return is_named or _is_cleaned_offset(disk, path, position)


def _is_cleaned_offset(disk: SimFiles, path: str, position: int) -> bool:
    """Return whether the byte belongs to the base offset of a compacted batch.

    Kafka's checksum does not cover it, and gaps between offsets are normal after compaction.
    """
    if not path.startswith("data/c-0/") or not path.endswith(".log"):
        return False
    segment = parse_segment(path, disk.tree.contents()[path])
    gaps_below = read_gaps_below(disk, "data", TopicPartition("c", 0))
    return any(
        batch.position <= position < batch.position + 8 and batch.base_offset < gaps_below
        for batch in segment.batches
    )


# The directory


def _directory(level: str, *, is_clean: bool, size: int) -> SimFiles:
    """Make plain records, an aborted transaction, rolls, deleted records, compaction,
    and a commit.
    """
    disk = SimFiles()
    cluster = open_cluster(disk, level)
    disk.make_directory(FOREIGN)
    disk.open(f"{FOREIGN}/album", create=True).write([b"of somebody else"], 0)
    clock = cluster.runtime.clock
    tiny = {"internal.segment.bytes": "160", "index.interval.bytes": "0"}
    cluster.create_topic("p", 1, config=tiny)
    cluster.create_topic("d", 1, config={"retention.ms": "123456789"})
    cluster.create_topic("c", 1, config={**tiny, "cleanup.policy": "compact"})
    producer = cluster.producer(enable_idempotence=True)
    for number in range(5 * size):
        producer.send("p", b"p%d" % number, key=b"k").result()
    for number in range(3 * size):
        producer.send("d", b"d%d" % number)
    producer.flush()
    for number in range(5 * size):
        producer.send("c", b"c%d" % number, key=b"%d" % (number % 2)).result()
    append_transaction(log_of(cluster, "p"), b"no", clock.wall_ms(), is_committed=False)
    cluster.admin().delete_records({("d", 0): 1})
    cluster.maintain()
    consumer = cluster.consumer(group_id=GROUP, enable_auto_commit=False)
    consumer.assign([("p", 0)])
    consumer.commit({("p", 0): 3})
    if is_clean:
        consumer.close()
        producer.close()
        cluster.close()
    return disk.survivor()


def _bits(disk: SimFiles) -> Iterator[tuple[str, int]]:
    for path, content in disk.tree.contents().items():
        if path.startswith(FOREIGN):
            continue
        filled = len(content.rstrip(b"\0")) * 8
        # Compare some bytes past the last one, because a log may end with zero bytes.
        filled = min(filled + 64, len(content) * 8)
        for bit in range(filled):
            yield path, bit
        for bit in range(filled, len(content) * 8, RESERVED_STEP):
            yield path, bit


# The visible state


def _state(disk: SimFiles, level: str) -> dict[str, Any]:
    """Return everything that clients can see, item by item: the value, or `Told`."""
    disk.crash(disk.calls + CALLS_MAX)
    try:
        cluster = open_cluster(disk, level)
    except EmbedlogError as error:
        return {"open": Told(error)}
    image = cluster.broker().core.controller.image
    state: dict[str, Any] = {"open": None, "cluster": image.cluster_id}
    state["foreign"] = disk.tree.contents().get(f"{FOREIGN}/album")
    for name, topic in image.topics_by_name.items():
        state[f"topic {name}"] = (
            topic.topic_id,
            len(topic.partitions),
            dict(image.topic_configs.get(name, {})),
        )
        if not topic.is_internal:
            state[f"records of {name}"] = _records(cluster, name)
    state["committed"] = _committed(cluster)
    state["health"] = [
        each.reason for each in cluster.health() if each.kind not in (CUT, QUARANTINED)
    ]
    return state


def _records(cluster: Cluster, topic: str) -> object:
    """Return the visible records of the log, and the next offset."""
    try:
        log = log_of(cluster, topic)
        if log.failure is not None:
            assert isinstance(log.failure, EmbedlogError), log.failure
            return Told(log.failure)
        try:
            return shown(log), log.log_end_offset, _sidecars(log)
        except AssertionError as error:
            # A broker sends batches without reading them; the consumer must find the damage.
            return _polled(cluster, topic) or str(error)
    except EmbedlogError as error:
        return Told(error)


def _sidecars(log: Log) -> object:
    """Return producers and epochs of a log, which prevent duplicates and hidden records.

    An unclean open begins an epoch at the log's end. Compaction removes the first batches of some
    epochs: a cache that is rebuilt from the remaining batches begins these epochs later.
    """
    producers = sorted(
        (entry.producer_id, entry.producer_epoch, entry.last_sequence)
        for entry in list(log.transactions.producers)
    )
    epochs = [entry for entry in log.epochs.cache.entries if entry[1] < log.log_end_offset]
    return producers, [] if log.config.compact else epochs


def _polled(cluster: Cluster, topic: str) -> object:
    consumer = cluster.consumer(enable_auto_commit=False, auto_offset_reset="earliest")
    consumer.assign([(topic, 0)])
    try:
        for _ in range(POLLS_MAX):
            consumer.poll(100)
    except EmbedlogError as error:
        return Told(error)
    return None


def _committed(cluster: Cluster) -> object:
    consumer = cluster.consumer(group_id=GROUP, enable_auto_commit=False)
    try:
        return str(consumer.committed([("p", 0)]))
    except EmbedlogError as error:
        return Told(error)
