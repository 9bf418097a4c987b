"""The processes of a story: putters, workers, and a process that only shares the directory."""

from __future__ import annotations

import random
import time
from typing import Any

import embedlog
from embedlog.errors import KafkaError, TimedOut
from tests.cluster.processes.roles import Work
from tests.crash.child import Say
from tests.queue.processes import direct, events
from tests.queue.processes.events import Event, now_us

SETTINGS: dict[str, Any] = {
    "group_share_min_record_lock_duration_ms": 1_000,
    "group_share_record_lock_duration_ms": 5_000,
}
POISON = 17
"""Every 17th job is released by all its workers, until its deliveries are used up."""


def opened(path: str, durability: str) -> embedlog.SharedCluster:
    """Open the directory, or connect to its owner."""
    return embedlog.connect_or_open(path, durability=durability, **SETTINGS)


def idling(path: str, durability: str) -> Work:
    """Share the directory, and say how many jobs are left."""

    def work(say: Say) -> None:
        with opened(path, durability) as cluster, cluster.admin() as admin:
            while True:
                say(b"left %d" % direct.left(admin))
                time.sleep(0.1)

    return work


def putting(path: str, durability: str, name: str, seed: int) -> Work:
    """Put jobs, and say each that is durable."""

    def work(say: Say) -> None:
        chance = random.Random(seed)
        with opened(path, durability) as cluster, direct.DirectQueue(cluster) as queue:
            number = 0
            while True:
                job = f"{name}-{number}"
                queue.put(job)
                say(Event(0, events.PUT, job).line())
                number += 1
                time.sleep(chance.random() * 0.01)

    return work


def working(path: str, durability: str, seed: int) -> Work:
    """Take jobs; acknowledge most of them, release or reject the others."""

    def work(say: Say) -> None:
        chance = random.Random(seed)
        with opened(path, durability) as cluster, direct.DirectQueue(cluster) as queue:
            while True:
                began_us = now_us()
                job = queue.get(timeout=0.5)
                if job is not None:
                    say(Event(0, events.GOT, job.value, began_us, job.deliveries).line())
                    time.sleep(chance.random() * 0.005)
                    say(Event(0, events.TRYING, job.value).line())
                    kind = _settle(job, chance.random())
                    say(Event(0, kind, job.value, now_us()).line())

    return work


def _settle(job: direct.DirectJob, chance: float) -> str:
    """Settle a job; return the kind of the outcome."""
    try:
        if int(job.value.rpartition("-")[2]) % POISON == POISON - 1 or chance < 0.1:
            job.release()
            return events.RELEASED
        if chance < 0.15:
            job.reject("no luck")
            return events.REJECTED
        job.ack(wait=True)
    except (KafkaError, TimedOut):
        return events.UNSURE
    return events.ACKED
