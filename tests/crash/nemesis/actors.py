"""Writers, readers and group members. Each is a thread that lives until `Stop` is set."""

from __future__ import annotations

import random
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from tests.crash.nemesis import topics
from tests.crash.nemesis.clients import (
    LIBRDKAFKA,
    SESSION_MS,
    Broken,
    LibrdkafkaReader,
    Link,
    NotCommitted,
    OwnReader,
    WriterClient,
    writer,
)
from tests.crash.nemesis.history import (
    ABORTED,
    ACKED,
    Group,
    History,
    Place,
    Reader,
    Transaction,
    Written,
)

AGAIN_S = 0.2
IN_FLIGHT_MAX = 100
"""Records without an outcome that a writer has at most."""
PAUSE_S = 0.01
KEYS = 5
STUCK_S = 15.0
"""Silence after which an operator begins a reader of librdkafka anew."""
RECORDS_MAX = 8
"""Records of a transaction."""


class Actor(threading.Thread, ABC):
    """A client. When it is `Broken`, it begins a new session with a new client object."""

    def __init__(self, name: str, link: Link, history: History, seed: str) -> None:
        super().__init__(name=name, daemon=True)
        self.link = link
        self.history = history
        self.random = random.Random(f"{seed} {name}")
        self.stop = threading.Event()
        self.sessions = 0

    def run(self) -> None:
        while not self.stop.is_set():
            self.sessions += 1
            try:
                self.session(f"{self.name}.{self.sessions}")
            except Broken as error:
                self.history.restarts.append(f"{self.name}: {error}")
                self.stop.wait(AGAIN_S)
            except BaseException:
                self.history.broken.append(f"{self.name}: {traceback.format_exc()}")
                return

    @abstractmethod
    def session(self, name: str) -> None:
        """Live until `stop` or `Broken`."""


class Writer(Actor):
    """Sends records one by one, many in flight, to all partitions of the plain topics."""

    def __init__(self, kind: str, link: Link, history: History, seed: str) -> None:
        super().__init__(f"writer {kind}", link, history, seed)
        self._kind = kind
        self._room = threading.Semaphore(IN_FLIGHT_MAX)
        self.places = [
            (topic, each)
            for topic, count in topics.PARTITIONS.items()
            for each in range(count)
            if topic != topics.COPIED
        ]

    def session(self, name: str) -> None:
        client = writer(self.link, self._kind)
        self._room = threading.Semaphore(IN_FLIGHT_MAX)
        try:
            number = 0
            while not self.stop.is_set():
                if not self._room.acquire(timeout=0.1):
                    client.drain()
                    continue
                self._send(client, name, number)
                number += 1
                if self.random.random() < 0.1:
                    time.sleep(self.random.random() * PAUSE_S * 4)
            client.drain()
        finally:
            client.close()

    def _send(self, client: WriterClient, name: str, number: int) -> None:
        place = self.random.choice(self.places)
        padding = b"." * self.random.choice((0, 10, 100, 1000))
        value = f"{name} {number} ".encode() + padding
        is_keyed = place[0] == topics.COMPACTED
        key = f"{self.name} {self.random.randrange(KEYS)} {place[1]}" if is_keyed else ""
        written = self.history.write(name, value, place, key.encode() or None)
        client.send(place, written.key, value, partial(self._told, written, self._room))

    @staticmethod
    def _told(
        written: Written,
        room: threading.Semaphore,
        offset: int | None,
        _error: BaseException | None,
    ) -> None:
        if offset is not None:
            written.outcome, written.offset = ACKED, offset
        room.release()


class TransactionWriter(Actor):
    """Commits, aborts and leaves transactions."""

    def __init__(self, kind: str, link: Link, history: History, seed: str) -> None:
        super().__init__(f"transactions {kind}", link, history, seed)
        self._kind = kind

    def session(self, name: str) -> None:
        client = writer(self.link, self._kind, self.name)
        try:
            for number in range(1_000_000):
                if self.stop.is_set():
                    return
                if self._transaction(client, name, number):
                    return
        finally:
            client.close()

    def _transaction(self, client: WriterClient, name: str, number: int) -> bool:
        """Return whether the transaction was left open, which ends the session."""
        transaction = Transaction(name)
        client.begin()
        self.history.transactions.append(transaction)
        for index in range(self.random.randrange(1, RECORDS_MAX)):
            place = (topics.COPIED, self.random.randrange(topics.PARTITIONS[topics.COPIED]))
            value = f"{name} {number} {index}".encode()
            written = self.history.write(name, value, place)
            written.transaction = transaction
            transaction.records.append(written)
            client.send(place, None, value, partial(self._told, written))
            time.sleep(self.random.random() * PAUSE_S)
        end = self.random.random()
        if end < 0.7:
            client.commit()
            transaction.outcome = ACKED
        elif end < 0.9:
            transaction.outcome = ABORTED
            client.abort()
        else:
            transaction.outcome = ABORTED
            client.drain()
        return end >= 0.9

    @staticmethod
    def _told(written: Written, offset: int | None, _error: BaseException | None) -> None:
        if offset is not None:
            written.offset = offset


class ReadingActor(Actor):
    """Reads named partitions from their beginning, at its own positions."""

    def __init__(
        self, kind: str, link: Link, history: History, seed: str, *, is_committed: bool
    ) -> None:
        level = "committed" if is_committed else "uncommitted"
        super().__init__(f"reader {kind} {level}", link, history, seed)
        self._kind = kind
        self.reader = Reader(self.name, is_committed)
        history.readers.append(self.reader)
        self.places = [
            (topic, each)
            for topic, count in topics.PARTITIONS.items()
            for each in range(count)
            if topic != topics.ANEW
        ]

    def session(self, name: str) -> None:
        level = "read_committed" if self.reader.is_committed else "read_uncommitted"
        client: LibrdkafkaReader | OwnReader
        if self._kind == LIBRDKAFKA:
            client = LibrdkafkaReader(self.link, **{"isolation.level": level})
        else:
            client = OwnReader(self.link, self._kind, isolation_level=level)
        try:
            client.assign({place: self.reader.position(place) for place in self.places})
            heard_s = time.monotonic()
            while not self.stop.is_set():
                for place, offset, _key, value in client.poll():
                    self.reader.take(place, offset, value)
                    heard_s = time.monotonic()
                if self._kind == LIBRDKAFKA and time.monotonic() - heard_s > STUCK_S:
                    # It sometimes asks no leader any more, and would for ever.
                    raise Broken(f"it has read nothing for {STUCK_S:.0f} s")
        finally:
            client.close()


class Member(Actor):
    """A member of a group. It commits its positions, but not after each poll."""

    def __init__(
        self, group: Group, number: int, kind: str, link: Link, history: History, seed: str
    ) -> None:
        super().__init__(f"{group.name} {kind} {number}", link, history, seed)
        self.group = group
        self._kind = kind
        self._floors: dict[Place, int] = {}

    def session(self, name: str) -> None:
        client: LibrdkafkaReader | OwnReader
        if self._kind == LIBRDKAFKA:
            settings = {"group.id": self.group.name, "session.timeout.ms": SESSION_MS}
            client = LibrdkafkaReader(self.link, **settings)
        else:
            protocol = "consumer" if "consumer" in self.group.name else "classic"
            own = {"session_timeout_ms": SESSION_MS} if protocol == "classic" else {}
            client = OwnReader(
                self.link, self._kind, group_id=self.group.name, group_protocol=protocol, **own
            )
        try:
            client.subscribe([topics.PLAIN], self._assigned)
            while not self.stop.is_set():
                self._step(client, name)
        finally:
            client.close()

    def _assigned(self, places: list[Place]) -> None:
        self._floors.update(self.group.floors(places))

    def _step(self, client: OwnReader | LibrdkafkaReader, name: str) -> None:
        got: dict[Place, list[int]] = {}
        for place, offset, _key, _value in client.poll():
            got.setdefault(place, []).append(offset)
        for place, offsets in got.items():
            self.group.took(name, place, offsets, self._floors.pop(place, None))
        if got and self.random.random() < 0.5:
            try:
                client.commit({place: offsets[-1] + 1 for place, offsets in got.items()})
            except NotCommitted:
                return
            self.group.stored({place: offsets[-1] + 1 for place, offsets in got.items()})


def wait(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
