"""The processes of a story: putters, workers, and a process that only shares the directory.

`hands` is `direct` or `over_queue`: the functions with which the processes use the queue.
"""

from __future__ import annotations

import random
import time
from typing import Any

import embedlog
from embedlog.errors import KafkaError, TimedOut
from tests.cluster.processes.roles import Work
from tests.crash.child import Say
from tests.queue.processes import events
from tests.queue.processes.events import Event, now_us

SETTINGS: dict[str, Any] = {
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_record_lock_duration_ms": 5_000,
}


def opened(path: str, durability: str) -> embedlog.SharedCluster:
    """Open the directory, or connect to its owner."""
    return embedlog.connect_or_open(path, durability=durability, **SETTINGS)


def idling(hands: Any, path: str, durability: str) -> Work:
    """Share the directory, and say how many jobs are left."""

    def work(say: Say) -> None:
        with opened(path, durability) as cluster, hands.open_queue(cluster) as queue:
            while True:
                say(b"left %d" % hands.left(queue))
                time.sleep(0.1)

    return work


def putting(hands: Any, path: str, durability: str, name: str, seed: int) -> Work:
    """Put jobs, and say each that is durable."""

    def work(say: Say) -> None:
        chance = random.Random(seed)
        with opened(path, durability) as cluster, hands.open_queue(cluster) as queue:
            number = 0
            while True:
                job = f"{name}-{number}"
                hands.put(queue, job, chance)
                say(Event(0, events.PUT, job).line())
                number += 1
                time.sleep(chance.random() * 0.01)

    return work


def working(hands: Any, path: str, durability: str, seed: int) -> Work:
    """Take jobs; acknowledge most of them, and settle the others in other ways."""

    def work(say: Say) -> None:
        chance = random.Random(seed)
        with opened(path, durability) as cluster, hands.open_queue(cluster) as queue:
            while True:
                began_us = now_us()
                job = queue.get(timeout=0.5)
                if job is not None:
                    say(Event(0, events.GOT, job.value, began_us, job.deliveries).line())
                    time.sleep(chance.random() * 0.005)
                    chosen = hands.choose(job, chance.random())
                    copies = int(chosen in hands.COPYING)
                    say(Event(0, events.TRYING, job.value, 0, copies).line())
                    try:
                        kind = hands.settle(job, chosen)
                    except (KafkaError, TimedOut):
                        kind = events.UNSURE
                    say(Event(0, kind, job.value, now_us()).line())

    return work
