"""One story: members of different clients share a topic, die and come again; then a check.

The records are numbered by their values. Promises that are checked at the end:

    every record was accepted, or rejected and is in the dead letter queue; none is both
    no record was delivered more often than the limit
    no two members held a record at once: each delivery of it has a count of its own (one broker),
    and nothing is acknowledged after it was accepted or rejected
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.interop.share.share_group import ShareGroup
from tests.interop.share.worker import Asked, Event, Worker

LIMIT = 10
QUEUE = "dlq.of-"
BATCH = 40
BETWEEN_S = (0.1, 0.4)
END_S_MAX = 60
Place = tuple[int, int]


class Told(NamedTuple):
    """The outcome of a story."""

    kills: int
    redelivered: int
    broken: list[str]


class Crew:
    """The members of the group, each in a process of its own."""

    def __init__(self, group: ShareGroup, clients: list[str], folder: Path, seed: int) -> None:
        self._group = group
        self._folder = folder
        self._chance = random.Random(seed)
        self._slots = list(clients)
        self.workers: list[Worker] = []
        self.living = [self._start(client) for client in clients]

    def _start(self, client: str) -> Worker:
        group = self._group
        asked = Asked(group.address, group.topic, group.name, seed=self._chance.randrange(1 << 30))
        worker = Worker(f"{client}-{len(self.workers)}", client, asked, self._folder)
        self.workers.append(worker)
        return worker

    def replace_one(self) -> None:
        """Kill or close a member, and start another of the same client."""
        # A JVM takes seconds to start, so it lives longer.
        weights = [1 if client == "java" else 4 for client in self._slots]
        (slot,) = self._chance.choices(range(len(self._slots)), weights)
        if self._chance.random() < 0.7:
            self.living[slot].kill()
        else:
            self.living[slot].close()
        self.living[slot] = self._start(self._slots[slot])

    def failed(self) -> list[str]:
        """Return the errors of the living members whose programs have ended."""
        ended = (each for each in self.living if each.process.poll() is not None)
        return [f"{each.name} ended: {each.said()}" for each in ended]

    def close(self) -> None:
        """Let all members leave the group."""
        for each in self.living:
            each.close()

    def discard(self) -> None:
        """End every process at once."""
        for each in self.workers:
            each.kill()


def tell(
    seed: int,
    group: ShareGroup,
    folder: Path,
    *,
    clients: list[str],
    partitions: int,
    count: int,
    seconds: float,
    fault: Callable[[random.Random], object] | None = None,
) -> Told:
    """Play the story of `seed`; `fault` brings trouble to the brokers, one at a time."""
    chance = random.Random(seed)
    queue = f"{QUEUE}{group.name}"
    group.configure(
        {"share.delivery.count.limit": str(LIMIT), "errors.deadletterqueue.topic.name": queue}
    )
    crew = Crew(group, clients, folder, seed)
    kills = produced = 0
    try:
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < seconds or produced < count:
            if produced < count * min(1, passed / seconds):
                numbers = range(produced, min(count, produced + BATCH))
                group.produce(numbers, partition=produced // BATCH % partitions)
                produced += len(numbers)
            time.sleep(chance.uniform(*BETWEEN_S))
            if fault is not None and chance.random() < 0.4:
                fault(chance)
            if chance.random() < 0.4:
                crew.replace_one()
                kills += 1
        deadline = time.monotonic() + END_S_MAX
        while group.lag() != 0 and time.monotonic() < deadline and not crew.failed():
            time.sleep(0.2)
        broken = crew.failed()
        if group.lag() != 0:
            broken.append(f"not consumed: {group.offsets()}")
        crew.close()
    finally:
        crew.discard()
    events = {worker.name: worker.events() for worker in crew.workers}
    letters = _letters(group, queue, events)
    broken += check(events, set(range(count)), letters, is_one_broker=fault is None)
    again = sum(
        event.kind == "got" and int(event.rest.split()[0]) > 1
        for each in events.values()
        for event in each
    )
    return Told(kills, again, broken)


def _letters(group: ShareGroup, queue: str, events: dict[str, list[Event]]) -> list[Place]:
    rejected = {
        (event.partition, event.offset)
        for each in events.values()
        for event in each
        if event.kind == "did" and event.rest == "reject"
    }
    if not rejected:
        return []
    found = []
    for letter in group.dead_letters(queue, len(rejected)):
        headers = dict(letter.headers() or ())
        found.append((int(headers["__dlq.errors.partition"]), int(headers["__dlq.errors.offset"])))
    return found


def check(
    events: dict[str, list[Event]], values: set[int], letters: list[Place], *, is_one_broker: bool
) -> list[str]:
    """Return the broken promises of these journals."""
    value_of: dict[Place, int] = {}
    counts: defaultdict[Place, Counter[int]] = defaultdict(Counter)
    sent: defaultdict[str, set[Place]] = defaultdict(set)
    done: defaultdict[Place, list[tuple[int, int, str, str]]] = defaultdict(list)
    for name, each in events.items():
        began: dict[Place, int] = {}
        for kind, when, partition, offset, rest in each:
            place = partition, offset
            if kind == "got":
                count, value = rest.split()
                value_of[place] = int(value)
                counts[place][int(count)] += 1
            elif kind == "try":
                began[place] = when
                sent[rest].add(place)
            elif kind == "did":
                done[place].append((when, began[place], rest, name))
    broken = [f"never delivered: {sorted(values - set(value_of.values()))}"]
    broken = broken if values - set(value_of.values()) else []
    over = sent["accept"] | set(letters)
    broken += [f"{place} was neither accepted nor rejected" for place in value_of.keys() - over]
    broken += [f"{place} has a dead letter, not a rejection" for place in letters
               if place not in sent["reject"]]  # fmt: skip
    for place, each in done.items():
        kinds = {kind for _, _, kind, _ in each}
        if "accept" in kinds and place in letters:
            broken.append(f"{place} was accepted and is a dead letter: {each}")
        if "reject" in kinds and place not in letters:
            broken.append(f"{place} was rejected and has no dead letter: {each}")
        broken += _after_the_end(place, sorted(each))
    for place, found in counts.items():
        if max(found) > LIMIT:
            broken.append(f"{place} was delivered {max(found)} times")
        known = {count: times for count, times in found.items() if count}  # the Java tool tells 0
        if is_one_broker and known and max(known.values()) > 1:
            broken.append(f"{place} was delivered to two members at once: {known}")
    return broken


def _after_the_end(place: Place, done: list[tuple[int, int, str, str]]) -> list[str]:
    ends = [when for when, _, kind, _ in done if kind != "release"]
    if not ends:
        return []
    late = [each for each in done if each[1] > ends[0]]
    return [f"{place} was acknowledged after its end: {done}"] if late else []
