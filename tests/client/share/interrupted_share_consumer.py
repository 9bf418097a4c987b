"""A program for `test_signals`: Ctrl-C ends calls of a share consumer at every `STEP`th line.

    python interrupted_share_consumer.py poll|commit|close implicit|explicit STEP
    python interrupted_share_consumer.py signals cluster|address COUNT

The first form raises KeyboardInterrupt at lines that move bytes, as `interrupted_consumer` of the
tests of consumers does. In the second form a timer sends signals, at any point of a loop that
polls, acknowledges and commits.

No record may be lost: each one comes to the application, here or in another member, and comes to
nobody after its acknowledgement was taken. After the call the consumer is as good as before. In the
first form `close` releases its records long before the locks expire; a signal at any point may
leave a record to the end of its lock, which is near in the second form.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import sys
from types import FrameType
from typing import Any

import embedlog
from embedlog import ShareConsumer, ShareRecord
from tests.client.consumer.interrupted_consumer import NETWORK, AtLine, interrupt

_STUCK_AFTER_S = 25
"""Less than the time of a lock."""
_WAIT_MS = 20_000
_LINES_MAX = 3_000
_SHORT_LOCK_MS = 3_000
_INTERVAL_S = 0.004
GROUP, TOPIC = "workers", "jobs"


class Application:
    """The records that were written, that came, and whose acknowledgement is stored."""

    def __init__(self, target: Any, producer: embedlog.Producer, mode: str) -> None:
        self.target = target
        self.producer = producer
        self.mode = mode
        self.written: set[int] = set()
        self.seen: set[int] = set()
        self.done: set[int] = set()
        """Records whose acknowledgement was surely taken."""

    def write(self) -> int:
        offset = self.producer.send(TOPIC, b"job").result().offset
        self.written.add(offset)
        return offset

    def consumer(self) -> ShareConsumer:
        consumer = ShareConsumer(
            self.target,
            group_id=GROUP,
            share_acknowledgement_mode=self.mode,
            max_poll_records=2,
        )
        consumer.set_acknowledgement_commit_callback(self._settled)
        consumer.subscribe([TOPIC])
        return consumer

    def _settled(self, offsets: dict[Any, set[int]], error: object) -> None:
        if error is None:
            for each in offsets.values():
                self.done |= each

    def poll(self, consumer: ShareConsumer, timeout_ms: int = _WAIT_MS) -> None:
        for record in consumer.poll(timeout_ms):
            self.take(consumer, record)

    def take(self, consumer: ShareConsumer, record: ShareRecord) -> None:
        assert record.offset not in self.done, f"{record} came again"
        self.seen.add(record.offset)
        if self.mode == "explicit":
            consumer.acknowledge(record)

    def read_up_to(self, consumer: ShareConsumer, offset: int) -> None:
        while offset not in self.seen:
            self.poll(consumer)

    def finish(self, consumer: ShareConsumer) -> None:
        """Let the consumer read one more record, and a successor all that is left."""
        self.read_up_to(consumer, self.write())
        assert not any(consumer.commit_sync().values())
        consumer.close()
        self.succeed()

    def succeed(self) -> None:
        with self.consumer() as successor:
            self.read_up_to(successor, self.write())
            while not self.seen >= self.written:
                self.poll(successor)
            assert not any(successor.commit_sync().values())
        assert self.seen == self.written


def polls(application: Application, number: int) -> bool:
    """Interrupt one of the polls that read some records; return whether there was time for it."""
    consumer = application.consumer()
    for _ in range(3):
        last = application.write()
    is_interrupted = False
    try:
        with AtLine(number, interrupt, NETWORK):
            application.read_up_to(consumer, last)
    except KeyboardInterrupt:
        is_interrupted = True
    application.finish(consumer)
    return is_interrupted


def commits(application: Application, number: int) -> bool:
    """Interrupt a commit, and commit again."""
    consumer = application.consumer()
    application.read_up_to(consumer, application.write())
    is_interrupted = False
    try:
        with AtLine(number, interrupt, NETWORK):
            consumer.commit_sync()
    except KeyboardInterrupt:
        is_interrupted = True
        consumer.commit_sync()
    application.finish(consumer)
    return is_interrupted


def closes(application: Application, number: int) -> bool:
    """Interrupt the close of a consumer with an acknowledged record, a new one, and one ahead."""
    consumer = application.consumer()
    first = application.write()
    application.read_up_to(consumer, first)
    assert not any(consumer.commit_sync().values())
    application.write()
    held = consumer.poll(_WAIT_MS)
    assert held
    is_interrupted = False
    try:
        with AtLine(number, interrupt, NETWORK):
            consumer.close()
    except KeyboardInterrupt:
        is_interrupted = True
        consumer.close()
    application.succeed()
    return is_interrupted


CALLS = {"poll": polls, "commit": commits, "close": closes}


def at_lines(what: str, mode: str, step: str) -> None:
    with cluster_with_topic() as cluster, embedlog.Producer(cluster) as producer:
        address = cluster.listen("127.0.0.1", 0).address
        for number in range(1, _LINES_MAX, int(step)):
            faulthandler.dump_traceback_later(_STUCK_AFTER_S, exit=True)
            import time

            print(number, time.monotonic(), flush=True)
            if not CALLS[what](Application(address, producer, mode), number):
                return


def cluster_with_topic(lock_ms: int = 30_000) -> embedlog.Cluster:
    locks = {
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": str(lock_ms),
    }
    cluster = embedlog.open(config=locks)
    cluster.create_topic(TOPIC)
    earliest = {"share.auto.offset.reset": "earliest"}
    cluster.admin().alter_configs({embedlog.ConfigResource("group", GROUP): earliest})
    return cluster


def by_signals(where: str, count: str) -> None:
    def interrupted(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupted)
    with cluster_with_topic(_SHORT_LOCK_MS) as cluster, embedlog.Producer(cluster) as producer:
        target = cluster if where == "cluster" else cluster.listen("127.0.0.1", 0).address
        application = Application(target, producer, "explicit")
        consumer = application.consumer()
        application.read_up_to(consumer, application.write())
        for turn in range(int(count)):
            faulthandler.dump_traceback_later(_STUCK_AFTER_S, exit=True)
            for _ in range(5):
                application.write()
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, _INTERVAL_S * (1 + turn % 5))
                work(application, consumer)
            signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                application.poll(consumer, 0)
            except embedlog.errors.IllegalState:
                # Records came to nobody: the signal came while a poll returned. Closing releases
                # them.
                consumer.close()
                consumer = application.consumer()
        application.finish(consumer)


def work(application: Application, consumer: ShareConsumer) -> None:
    while True:
        application.poll(consumer, 100)
        consumer.commit_sync()


if __name__ == "__main__":
    if sys.argv[1] == "signals":
        by_signals(*sys.argv[2:])
    else:
        at_lines(*sys.argv[1:])
