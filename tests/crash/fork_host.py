"""The process that forks, for `tests.crash.forks`: `python -m tests.crash.fork_host DIR LEVEL N`.

It is a program of its own, so that its children end like normal programs, with all exit code of the
interpreter. It prints `ok ACTION` or `broken TEXT` for each child.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time

import embedlog

PARTITIONS = 4
_HUNG_AFTER_S = 30.0
_WAIT_S = 60.0


class Parent:
    """A cluster whose clients work in threads while the process forks."""

    def __init__(self, directory: str, durability: str) -> None:
        self.directory = directory
        self.durability = durability
        self.cluster = embedlog.open(directory, durability=durability)
        self.cluster.create_topic("events", PARTITIONS)
        self.producer = self.cluster.producer()
        self.consumer = self.cluster.consumer(group_id="group", auto_offset_reset="earliest")
        self.consumer.subscribe(["events"])
        self.acknowledged: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self.is_over = False
        works = [(self._write, 0), (self._write, 1), (self._read, 0)]
        self.threads = [threading.Thread(target=work, args=(n,)) for work, n in works]

    def _write(self, partition: int) -> None:
        # The thread writes to a partition of its own. The other partitions get records rarely, so
        # that their logs are idle at most forks.
        number = 0
        try:
            while not self.is_over:
                chosen = partition if number % 50 else partition + 2
                value = b"%d" % number * 20
                self.producer.send("events", value, partition=chosen).result(_WAIT_S)
                self.acknowledged[chosen].append(value)
                number += 1
                if number % 5 == 0:
                    time.sleep(0.0005)  # leaves processor time to the children
        except BaseException as error:
            self.errors.append(f"a writer: {error!r}")

    def _read(self, _number: int) -> None:
        try:
            while not self.is_over:
                self.consumer.poll(20)
        except BaseException as error:
            self.errors.append(f"a reader: {error!r}")

    # Actions of children

    def act(self, action: str) -> None:
        """Perform an action in a child. Open objects are left to the exit of the interpreter."""
        if action == "close":
            self.cluster.close()
        elif action == "close clients":
            self.producer.close()
            self.consumer.close()
            self.cluster.close()
        elif action == "leave with":
            with self.cluster_entered:
                pass
        elif action == "vanish":
            os._exit(0)
        elif action == "use":
            self._use()
        elif action == "open another":
            self._open_another()
        elif action == "open the same":
            self._open_the_same()
        elif action == "fork again":
            faulthandler.cancel_dump_traceback_later()  # the child would lack its thread
            if os.fork() == 0:
                self.cluster.close()
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 0

    def _use(self) -> None:
        for call in (
            lambda: self.producer.send("events", b"of the child"),
            self.producer.flush,
            lambda: self.consumer.poll(10),
            lambda: self.cluster.topics,
            lambda: self.cluster.create_topic("of-the-child"),
            self.cluster.maintain,
        ):
            try:
                call()
            except embedlog.ClosedError:
                continue
            raise AssertionError("a call of a child on its parent's cluster was not refused")

    def _open_another(self) -> None:
        directory = f"{self.directory}-{os.getpid()}"
        with embedlog.open(directory, durability=self.durability) as own:
            own.create_topic("events", 1)
            with own.producer() as producer:
                assert producer.send("events", b"own").result(_WAIT_S).offset == 0

    def _open_the_same(self) -> None:
        try:
            embedlog.open(self.directory)
        except embedlog.DirectoryLocked:
            return
        raise AssertionError("a child has opened the directory of its parent")


class Entered:
    """A `with` block of the parent that only the child leaves."""

    def __init__(self, cluster: embedlog.Cluster) -> None:
        self.cluster = cluster

    def __enter__(self) -> None:
        """Do nothing: the block was entered before the fork."""

    def __exit__(self, *exception: object) -> None:
        self.cluster.__exit__(None, None, None)


ACTIONS = (
    "nothing",
    "close",
    "leave with",
    "close clients",
    "vanish",
    "use",
    "open another",
    "open the same",
    "fork again",
)


def main() -> None:
    directory, durability, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    chance = random.Random(count)
    parent = Parent(directory, durability)
    parent.cluster_entered = Entered(parent.cluster)
    for thread in parent.threads:
        thread.start()
    try:
        for number in range(count):
            action = ACTIONS[number % len(ACTIONS)]
            time.sleep(chance.random() * 0.004)  # random point in the work of the threads
            pid = os.fork()
            if pid == 0:
                faulthandler.dump_traceback_later(_HUNG_AFTER_S / 2)
                parent.act(action)
                sys.exit(0)
            _say(_outcome(pid), action)
    finally:
        parent.is_over = True
    for thread in parent.threads:
        thread.join(_WAIT_S)
        if thread.is_alive():
            _say("a thread of the parent hangs", "")
    for error in parent.errors:
        _say(error, "")
    parent.producer.close()
    parent.consumer.close()
    lingering = os.fork()
    if lingering == 0:
        time.sleep(_WAIT_S)
        os._exit(0)
    parent.cluster.close()
    _look(parent)
    os.kill(lingering, signal.SIGKILL)
    os.waitpid(lingering, 0)


def _outcome(pid: int) -> str:
    deadline = time.monotonic() + _HUNG_AFTER_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return "" if status == 0 else f"ended with status {status:#x}"
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"


def _say(problem: str, action: str) -> None:
    line = f"broken a child with the action {action!r} {problem}" if problem else f"ok {action}"
    print(line, flush=True)


def _look(parent: Parent) -> None:
    """Check that the parent's data is complete, from a cluster opened while a child still lives."""
    with (
        embedlog.open(parent.directory, durability=parent.durability) as cluster,
        cluster.consumer(fetch_max_wait_ms=1) as consumer,
    ):
        for partition, expected in enumerate(parent.acknowledged):
            key = embedlog.TopicPartition("events", partition)
            consumer.assign([key])
            consumer.seek_to_beginning()
            (end,) = consumer.end_offsets([key]).values()
            found: list[bytes] = []
            while consumer.position(key) < end:
                found += [record.value for record in consumer.poll(100)]
            if found != expected:
                _say(f"{len(found)} records in {key}, {len(expected)} were acknowledged", "")
            print(f"records {len(found)}", flush=True)


if __name__ == "__main__":
    main()
