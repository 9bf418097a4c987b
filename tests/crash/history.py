"""A workload through the public API, and its promises at each moment.

A promise is recorded when a call returns; a possible change before the call. At any file call in
between, and after any error, the history therefore knows which state is certain and which is
possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from embedlog.client.admin.configs import AlterOperation, ConfigResource
from embedlog.errors import EmbedlogError
from embedlog.testing import SimFiles, SimRuntime
from tests.crash.simulated import GROUP, append_transaction, log_of, open_cluster

if TYPE_CHECKING:
    from embedlog.cluster.cluster import Cluster

TINY = {"internal.segment.bytes": "200", "index.interval.bytes": "0"}
RETAINED_SIZE = 300
TOPICS: dict[str, dict[str, str]] = {
    "a": {},
    "b": {},  # of the other level
    "r": TINY,
    "s": {**TINY, "retention.bytes": str(RETAINED_SIZE)},
    "k": {**TINY, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"},
    "d": {},
}
SEND_TIMEOUT_MS = 2_000
"""Time limit of a producer's retries, in simulated time."""
BACKGROUND_MS = 61_000
"""Long enough for every checkpoint to come round."""


class Sent(NamedTuple):
    """A record as it was sent; `kind` is "plain", "aborted", or "control"."""

    key: bytes | None
    value: bytes | None
    kind: str = "plain"


class Promise:
    """The promised state of one topic, and its other possible states."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.existence = "coming"
        """"coming" and "going" during a call, "there", or "gone"."""
        self.attempts: list[Sent] = []
        """Every record in the order of sending, including one in flight."""
        self.acknowledged: dict[int, Sent] = {}
        self.start_asked = 0
        """Records below may be gone."""
        self.start_promised = 0
        """Records below are gone."""
        self.retention_ms: list[str | None] = [None]
        """The setting's possible values, the promised value first."""
        self.partition_count = 1
        self.epoch = 0

    @property
    def end(self) -> int:
        """Return the offset after the last acknowledged record."""
        return max(self.acknowledged, default=-1) + 1


class Healing(SimFiles):
    """A disk that can be mended."""

    def heal(self) -> None:
        """Let no more calls fail."""


class History:
    """One life of a directory, over restarts. `errors` has the typed errors of failed calls, if
    failures are `tolerated`.
    """

    def __init__(self, disk: SimFiles, level: str, *, tolerated: bool = False) -> None:
        self.disk = disk
        self.level = level
        self.tolerated = tolerated
        self.errors: list[EmbedlogError] = []
        self.topics: dict[str, Promise] = {}
        self.commits: list[int] = []
        """Offsets of topic "a" that were committed, in order, including one in flight."""
        self.commit_promised = -1
        """The index of the last certain commit."""
        self.version = 0
        """Changes with every promise."""
        self.count = 0
        self._open()

    @property
    def runtime(self) -> SimRuntime:
        runtime = self.cluster.runtime
        assert isinstance(runtime, SimRuntime)
        return runtime

    def value(self, size: int = 0) -> bytes:
        """Return a value that was never sent before."""
        self.count += 1
        return b"%d." % self.count + b"x" * size

    def attempt(self, call: Callable[[], object]) -> bool:
        """Make a call. Return False if it failed with a typed error, and errors are tolerated."""
        try:
            call()
        except EmbedlogError as error:
            if not self.tolerated:
                raise
            self.errors.append(error)
            return False
        finally:
            self.version += 1
        return True

    def need(self, topic: str) -> None:
        """Create a topic with two records if it does not exist."""
        if topic not in self.topics or self.topics[topic].existence == "gone":
            self.create(topic, TOPICS[topic])
            self.send(topic, self.value(), key=b"k")
            self.send(topic, self.value(), key=b"k")

    def create(self, topic: str, config: dict[str, str]) -> None:
        """Create a topic at the cluster's level; topic "b" at the other level."""
        level = self.level
        if topic == "b":
            level = "os" if level == "fsync" else "fsync"
            config = {**config, "embedlog.durability": level}
        promise = self.topics[topic] = Promise(level)
        if self.attempt(lambda: self.cluster.create_topic(topic, 1, config=config)):
            promise.existence = "there"

    def send(self, topic: str, value: bytes | None, *, key: bytes | None = None) -> None:
        """Send a record and wait for its acknowledgement."""
        self.send_all(topic, [Sent(key, value)])

    def send_all(self, topic: str, records: list[Sent]) -> None:
        """Send all records, and wait."""
        promise = self.topics[topic]
        promise.attempts += records

        def call() -> None:
            sent = [self.producer.send(topic, r.value, key=r.key, partition=0) for r in records]
            for record, future in zip(records, sent, strict=True):
                promise.acknowledged[future.result().offset] = record
                self.version += 1

        self.attempt(call)

    def reopen(self) -> None:
        """Close cleanly and open again."""
        self.attempt(self.producer.close)
        if not self._attempt_on_directory(self.cluster.close):
            self.disk = self.disk.survivor()  # the end of its process
        if not self._attempt_on_directory(self._open):
            if isinstance(self.disk, Healing):
                self.disk.heal()
            self._open()

    def _attempt_on_directory(self, call: Callable[[], object]) -> bool:
        """Open or close: here an error of the operating system is allowed."""
        try:
            return self.attempt(call)
        except OSError:
            if not self.tolerated:
                raise
            return False

    def _open(self) -> None:
        # Ids must not come again after a restart.
        self.cluster: Cluster = open_cluster(self.disk, self.level, seed=self.version)
        self.producer = self.cluster.producer(
            enable_idempotence=True,
            linger_ms=0,
            request_timeout_ms=SEND_TIMEOUT_MS,
            delivery_timeout_ms=SEND_TIMEOUT_MS,
        )

    def note_epochs(self) -> None:
        """Record the leader epochs that readers may know."""
        for name, promise in self.topics.items():
            image = self.cluster.broker().core.controller.image.partition(name, 0)
            if image is not None:
                promise.epoch = image.leader_epoch


# The operations of workloads. Topics that they need are created before.


def append(history: History) -> None:
    """Append two records, one after the other."""
    history.send("a", history.value())
    history.send("a", history.value())


def append_large(history: History) -> None:
    """Append a record over several sectors, then a short one."""
    history.send("a", history.value(1300))
    history.send("a", history.value())


def append_at_other_level(history: History) -> None:
    """Append records to a topic with its own level."""
    history.send("b", history.value(600))
    history.send("b", history.value())


def roll(history: History) -> None:
    """Append records over several segments."""
    for _ in range(4):
        history.send("r", history.value(), key=b"k")


def retain(history: History) -> None:
    """Let retention remove segments."""
    for _ in range(4):
        history.send("s", history.value(30))
    promise = history.topics["s"]

    def call() -> None:
        log = log_of(history.cluster, "s")
        excess = log.size - RETAINED_SIZE
        for segment, following in zip(log.segments, log.segments[1:], strict=False):
            if segment.size > excess:
                break
            excess -= segment.size
            promise.start_asked = max(promise.start_asked, following.base_offset)
        history.cluster.maintain()

    history.attempt(call)


def compact(history: History) -> None:
    """Send keys several times, with a tombstone for one, and compact."""
    for number in range(3):
        history.send("k", history.value(20), key=b"%d" % (number % 2))
    history.send("k", None, key=b"0")
    history.send("k", history.value(20), key=b"k")
    history.attempt(history.cluster.maintain)


def create(history: History) -> None:
    """Create a topic, and send its first record."""
    name = f"n{len(history.topics)}"
    history.create(name, {"retention.bytes": "1000000"})
    if history.topics[name].existence == "there":
        history.send(name, history.value())


def delete(history: History) -> None:
    """Delete a topic with its records."""
    promise = history.topics["d"]
    promise.existence = "going"
    if history.attempt(lambda: history.cluster.admin().delete_topics(["d"]).check()):
        promise.existence = "gone"


def configure(history: History) -> None:
    """Change a setting."""
    promise = history.topics["a"]
    value = str(700_000_000 + history.count)
    history.count += 1
    promise.retention_ms.append(value)
    resource = ConfigResource("topic", "a")
    change = {resource: {"retention.ms": (AlterOperation.SET, value)}}
    if history.attempt(lambda: history.cluster.admin().incremental_alter_configs(change).check()):
        promise.retention_ms = [value]


def commit(history: History) -> None:
    """Commit an offset of a group, twice."""
    for _ in range(2):
        number = len(history.commits)
        history.commits.append(number)

        def call(number: int = number) -> None:
            admin = history.cluster.admin()
            admin.alter_group_offsets(GROUP, {("a", 0): number}).check()
            history.commit_promised = number

        history.attempt(call)


def delete_records(history: History) -> None:
    """Delete the first records of a topic."""
    promise = history.topics["a"]
    start = min(promise.start_promised + 1, promise.end)
    promise.start_asked = max(promise.start_asked, start)

    def call() -> None:
        history.cluster.admin().delete_records({("a", 0): start}).check()
        promise.start_promised = start

    history.attempt(call)


def restart(history: History) -> None:
    """Close cleanly and open."""
    history.reopen()


def abort(history: History) -> None:
    """Abort a transaction."""
    promise = history.topics["a"]
    record, control = Sent(None, history.value(), "aborted"), Sent(None, None, "control")
    promise.attempts += [record, control]

    def call() -> None:
        log = log_of(history.cluster, "a")
        now_ms = history.runtime.clock.wall_ms()
        offset = append_transaction(log, record.value or b"", now_ms, is_committed=False)
        promise.acknowledged[offset - 1] = record
        promise.acknowledged[offset] = control

    history.attempt(call)


def pass_time(history: History) -> None:
    """Let every checkpoint come round. Errors of background work reach no caller."""
    history.runtime.scheduler.run_for(BACKGROUND_MS)
    history.version += 1


def add_partition(history: History) -> None:
    """Add a partition to a topic."""
    count = history.topics["a"].partition_count + 1

    def call() -> None:
        history.cluster.admin().create_partitions({"a": count}).check()
        history.topics["a"].partition_count = count

    history.attempt(call)


OPERATIONS: dict[str, tuple[str, Callable[[History], None]]] = {
    "append": ("a", append),
    "large": ("a", append_large),
    "other level": ("b", append_at_other_level),
    "roll": ("r", roll),
    "retain": ("s", retain),
    "compact": ("k", compact),
    "create": ("", create),
    "delete": ("d", delete),
    "configure": ("a", configure),
    "commit": ("a", commit),
    "delete records": ("a", delete_records),
    "restart": ("", restart),
    "abort": ("a", abort),
    "time": ("", pass_time),
    "partition": ("a", add_partition),
}
"""Name -> (the topic that it needs, the operation)."""


def perform(history: History, operation: str) -> None:
    """Perform one operation on a prepared cluster."""
    OPERATIONS[operation][1](history)
    history.note_epochs()


def prepare(history: History, operation: str) -> None:
    """Create the topic that an operation needs."""
    topic = OPERATIONS[operation][0]
    if topic:
        history.need(topic)
        history.note_epochs()
