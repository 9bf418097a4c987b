"""The operations that `interrupts` interrupts, and the state that must follow."""

from __future__ import annotations

import contextlib
import warnings

import embedlog
from embedlog.errors import ClosedError
from embedlog.storage.log.retention import delete_old_segments
from embedlog.storage.log.shutdown import close_log
from tests.crash.opcodes import STORAGE
from tests.storage.logs import NOW, append, batch, check, new_log, values

_WAIT_S = 15.0
_EVERYTHING = ("/embedlog/", "/wire/")


class Scenario:
    """One operation on objects of its own, in a directory of its own."""

    roots: tuple[str, ...] = STORAGE
    cost = 1
    """The time of one interrupt, relative to one of a log."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def work(self) -> None:
        """Perform the operation. It succeeds also if it is repeated."""

    def look(self) -> None:
        """Raise an error unless the state is right."""

    def close(self) -> None:
        """Close the objects."""


class LogScenario(Scenario):
    """An operation on a log over simulated files."""

    settings: dict[str, object] = {"index_interval_bytes": 0}

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.log = new_log(**self.settings)
        append(self.log, b"first", producer=(7, 0, 0))
        append(self.log, b"second", producer=(7, 0, 1))
        self.records = batch(b"third" * 10, producer=(7, 0, 2))

    def work(self) -> None:
        with self.log.lock:
            self.log.append_as_leader(self.records, leader_epoch=1, now_ms=NOW)
        self.log.durability.sync(self.log.log_end_offset)

    def look(self) -> None:
        self.log.check_usable()
        with self.log.lock:
            check(self.log)
        seen = values(self.log)
        assert seen[:2] == [b"first", b"second"], seen
        assert seen[2:] in ([], [b"third" * 10]), seen

    def close(self) -> None:
        with self.log.lock:
            close_log(self.log)


class Roll(LogScenario):
    """An append that begins a segment, and syncs the last one."""

    settings = {"segment_bytes": 200, "durability": "fsync"}


class Synced(LogScenario):
    """An append and its sync."""

    settings = {"durability": "fsync"}


class Read(LogScenario):
    """Reads and look-ups."""

    settings = {"segment_bytes": 300, "index_interval_bytes": 0}

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        for number in range(6):
            append(self.log, b"%d" % number * 50, timestamps=NOW + number)

    def work(self) -> None:
        assert self.log.reader.fetch_offset(NOW + 5) == (NOW + 5, 7, 0)
        self.log.reader.read(2, max_bytes=1000, end_offset=8)
        self.log.reader.read(7, max_bytes=1000, end_offset=8)

    def look(self) -> None:
        with self.log.lock:
            check(self.log)
        assert len(values(self.log)) == 8


class Retention(LogScenario):
    """Retention removes old segments."""

    settings = {"segment_bytes": 200, "retention_bytes": 300, "index_interval_bytes": 0}

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        for number in range(6):
            append(self.log, b"%d" % number * 50)
        self.log.offsets.update_high_watermark(self.log.log_end_offset)

    def work(self) -> None:
        with self.log.lock:
            delete_old_segments(self.log, NOW)

    def look(self) -> None:
        self.log.check_usable()
        with self.log.lock:
            check(self.log)
        seen = values(self.log)
        assert seen[-2:] == [b"4" * 50, b"5" * 50], seen


class CloseLog(LogScenario):
    """The close of a log."""

    def work(self) -> None:
        with self.log.lock:
            close_log(self.log)

    def look(self) -> None:
        with self.log.lock:
            assert self.log.log_end_offset == 2


class ClusterScenario(Scenario):
    """An operation on a cluster in a directory, through its clients."""

    roots = _EVERYTHING
    cost = 8
    durability = "os"

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.cluster = embedlog.open(f"{directory}/data", durability=self.durability)
        self.cluster.create_topic("events", 1)
        self.producer = self.cluster.producer(enable_idempotence=True)
        self.sent = [b"first"]
        self.producer.send("events", b"first").result(_WAIT_S)

    def look(self) -> None:
        """Another producer and a reader can work; no record is lost, altered or doubled."""
        with self.cluster.producer() as producer:
            value = b"of another thread, %d" % len(self.sent)
            producer.send("events", value).result(_WAIT_S)
            self.sent.append(value)
        found = self.read()
        assert len(found) == len(set(found)), found
        missing = [value for value in self.sent if value not in found]
        assert not missing, (missing, found)

    def read(self) -> list[bytes]:
        with self.cluster.consumer(fetch_max_wait_ms=1) as consumer:
            key = embedlog.TopicPartition("events", 0)
            consumer.assign([key])
            consumer.seek_to_beginning()
            (end,) = consumer.end_offsets([key]).values()
            found: list[bytes] = []
            for _ in range(1000):
                if consumer.position(key) >= end:
                    return found
                found += [record.value for record in consumer.poll(10)]
            raise AssertionError(f"a reader is stuck at {consumer.position(key)} of {end}")

    def close(self) -> None:
        """Close the cluster, and find the same state after another open."""
        self.producer.close()
        self.cluster.close()
        with embedlog.open(f"{self.directory}/data", durability=self.durability) as self.cluster:
            found = self.read()
            assert set(self.sent) <= set(found), (self.sent, found)
            assert self.cluster.health() == []


class Send(ClusterScenario):
    """A send and the wait for it, by a producer that continues afterwards."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.number = 0
        self.is_second = False

    def work(self) -> None:
        self.number += 1
        value = b"sent %d" % self.number
        try:
            self.producer.send("events", value).result(_WAIT_S)
        except embedlog.errors.UnknownServerError:
            # The batch belonged to an interrupted pass: "nobody knows whether they are written".
            if self.is_second:
                raise
            self.is_second = True
            self.work()
        else:
            self.sent.append(value)

    def close(self) -> None:
        # The interrupted record's failure may be logged, because nothing has awaited its future.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            super().close()


class SendSynced(Send):
    """A send whose acknowledgement waits for the disk."""

    durability = "fsync"


class Poll(ClusterScenario):
    """A poll: it skips no record, and returns none twice."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.consumer = self.cluster.consumer(fetch_max_wait_ms=1)
        self.consumer.assign([("events", 0)])
        self.consumer.seek_to_beginning()

    def work(self) -> None:
        for _ in range(20):
            if self.consumer.poll(10):
                return

    def close(self) -> None:
        self.consumer.close()
        super().close()


class Commit(ClusterScenario):
    """A commit of offsets: afterwards the old or the new offset is stored."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.consumer = self.cluster.consumer(group_id="group", enable_auto_commit=False)
        self.consumer.assign([("events", 0)])
        self.consumer.commit({("events", 0): 1})
        self.committed = (1, 1)

    def work(self) -> None:
        before = self.committed[1]
        self.committed = (before, before + 1)
        self.consumer.commit({("events", 0): before + 1})
        self.committed = (before + 1, before + 1)

    def look(self) -> None:
        super().look()
        with self.cluster.admin() as admin:
            stored = admin.list_group_offsets(["group"])["group"]
        found = stored[embedlog.TopicPartition("events", 0)]
        assert found is not None
        assert self.committed[0] <= found.offset <= self.committed[1], (found, self.committed)

    def close(self) -> None:
        self.consumer.close()
        super().close()


class Maintain(ClusterScenario):
    """Retention, checkpoints and all other maintenance at once."""

    def work(self) -> None:
        self.cluster.maintain()


class CloseCluster(ClusterScenario):
    """The close of a cluster: a second close completes an interrupted one."""

    durability = "fsync"

    def work(self) -> None:
        self.cluster.close()

    def look(self) -> None:
        with contextlib.suppress(ClosedError):
            super().look()


SCENARIOS: dict[str, type[Scenario]] = {
    "append": LogScenario,
    "append and sync": Synced,
    "roll": Roll,
    "read": Read,
    "retention": Retention,
    "close of a log": CloseLog,
    "send": Send,
    "send at fsync": SendSynced,
    "poll": Poll,
    "commit": Commit,
    "maintain": Maintain,
    "close": CloseCluster,
}
