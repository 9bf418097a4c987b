"""One run of a group: members come and go while records are produced; the history is checked."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.groups.checker import check
from tests.interop.groups.committed import committed_offsets
from tests.interop.groups.history import Event, History, Partition, in_order
from tests.interop.groups.member import Member, Membership

SECONDS_MAX = 60


class GroupRun:
    """A topic, a group, and its members. Its end stops every process that it started."""

    def __init__(
        self, address: str, name: str, folder: Path, *, partitions: int, session_ms: int = 6000
    ) -> None:
        self.address = address
        self.group = f"{name}-group"
        self.topic = f"{name}-topic"
        self.session_ms = session_ms
        self.members: list[Member] = []
        self.partitions = {(self.topic, number) for number in range(partitions)}
        self.produced: dict[Partition, int] = dict.fromkeys(sorted(self.partitions), 0)
        self._folder = folder
        self._names = itertools.count()
        self._own_events: list[Event] = []
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        made = admin.create_topics([NewTopic(self.topic, partitions, 1)])
        made[self.topic].result(SECONDS_MAX)
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0})

    # Members

    def join(
        self, client: str, *, protocol: str = "classic", instance: str | None = None
    ) -> Member:
        """Start a member; it may join after this returns."""
        asked = Membership(
            self.address, self.group, (self.topic,), protocol, instance, self.session_ms
        )
        member = Member(f"{client}-{next(self._names)}", client, asked, self._folder)
        self.members.append(member)
        return member

    def alive(self) -> list[Member]:
        """Return the members that run and are not frozen."""
        return [member for member in self.members if member.is_alive]

    def wait_until_stable(self, *, each: int | None = None) -> None:
        """Wait until every partition has exactly one living owner (and every member `each`
        partitions).
        """

        def is_stable() -> bool:
            owned = [member.owned() for member in self.alive()]
            held = [partition for partitions in owned for partition in partitions]
            if sorted(held) != sorted(self.partitions):
                return False
            return each is None or all(len(partitions) == each for partitions in owned)

        self.wait(is_stable, lambda: f"not stable: {self._holdings()}")

    def wait_until_spread(self) -> None:
        """Wait until the group is stable and every living member has its fair share."""
        fewest = len(self.partitions) // max(len(self.alive()), 1)
        self.wait_until_stable()
        self.wait(
            lambda: all(len(member.owned()) >= fewest for member in self.alive()),
            lambda: f"not spread: {self._holdings()}",
        )
        self.wait_until_stable()

    # Records

    def produce(self, count: int, partition: int | None = None) -> None:
        """Produce to one partition, or to all in turn; return when all records are acknowledged."""
        refused: list[object] = []
        numbers = itertools.cycle([partition] if partition is not None else self._numbers())
        for number in itertools.islice(numbers, count):
            self._producer.produce(
                self.topic, b"value", partition=number,
                on_delivery=lambda error, _: error and refused.append(error),
            )  # fmt: skip
            self.produced[self.topic, number] += 1
        assert self._producer.flush(SECONDS_MAX) == 0
        assert not refused, refused[0]

    def _numbers(self) -> list[int]:
        return sorted(number for _, number in self.partitions)

    def wait_until_consumed(self) -> None:
        """Wait until every record is consumed and committed."""
        self.wait(
            lambda: self.committed() == self.produced,
            lambda: f"committed {self.committed()} of {self.produced}; {self._holdings()}",
        )

    def committed(self) -> dict[Partition, int]:
        """Return the committed offset of each partition; 0 for none."""
        return committed_offsets(self.address, self.group, self.partitions)

    # The end

    def note(self, kind: str) -> None:
        """Record an event of the broker: "broker killed"."""
        self._own_events.append(Event(time.monotonic() * 1000, "broker", kind))

    def history(self) -> History:
        """Return the whole history so far."""
        committed = self.committed()
        events = [event for member in self.members for event in member.read()]
        named = {each.name: each.asked.instance for each in self.members if each.asked.instance}
        ordered = in_order([*events, *self._own_events])
        return History(ordered, self.produced, committed, named)

    def finish(self) -> None:
        """Consume to the end, close all members, and check the history."""
        self.wait_until_consumed()
        self.wait_until_stable()
        for member in self.alive():
            member.close()
        self.check()

    def check(self) -> None:
        """Check the promises.

        Raises:
            AssertionError: a promise was broken; the message lists all.
        """
        broken = check(self.history())
        assert not broken, "\n".join(broken)

    def wait(self, is_so: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Wait until the condition holds.

        Raises:
            AssertionError: it never held, or a member's program failed.
        """
        deadline = time.monotonic() + SECONDS_MAX
        while not is_so():
            for member in self.alive():
                member.read()
                ended = member.is_alive and not member.is_running()
                assert not ended, f"{member} ended: {member.said()}"
            assert time.monotonic() < deadline, otherwise()
            time.sleep(0.05)

    def _holdings(self) -> str:
        return ", ".join(
            f"{member}: {sorted(number for _, number in member.owned())}" for member in self.members
        )

    def __enter__(self) -> GroupRun:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.discard()
