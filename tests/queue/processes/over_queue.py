"""`embedlog.Queue` in a story: the ways in which its workers settle jobs."""

from __future__ import annotations

import random
from typing import Any

import embedlog
from tests.queue.processes import events

NAME = "jobs"
LOCK_S = 5.0
RETRIES = 3
FETCHES_AHEAD = True
PENDING = (events.PUT, events.GOT, events.RELEASED)
"""Last events of jobs that have to come again."""
DELIVERY_LIMIT = 10
"""The queue's limit for deliveries that no failure ended; each failure is a new record as well."""
DELAY_MAX_S = 0.3
POISON = 17
"""Every 17th job fails until its retries are used up."""


def create(cluster: Any) -> None:
    """Make the queue."""
    open_queue(cluster).close()


def open_queue(cluster: Any) -> embedlog.Queue:
    """Return the queue."""
    made: embedlog.Queue = cluster.queue(NAME, lock=LOCK_S, retries=RETRIES)
    return made


def put(queue: embedlog.Queue, job: str, chance: random.Random) -> None:
    """Put a job, sometimes a delayed one."""
    if chance.random() < 0.2:
        queue.put(job, delay=chance.random() * DELAY_MAX_S)
    else:
        queue.put(job)


def choose(job: embedlog.Job, chance: float) -> str:
    """Return what the worker does with a job."""
    if int(job.value.rpartition("-")[2]) % POISON == POISON - 1:
        return "fail"
    for limit, chosen in ((0.05, "release"), (0.1, "delay"), (0.15, "reject"), (0.2, "renew")):
        if chance < limit:
            return chosen
    return "ack"


COPYING = ("delay", "reject", "fail")
"""Ends of a job that first append a record and then acknowledge the job's own. A process, or an
owner, that dies between the two leaves the job there twice."""


def settle(job: embedlog.Job, chosen: str) -> str:
    """Settle a job; return the kind of the outcome."""
    if chosen == "release":
        job.release()
        return events.RELEASED
    if chosen == "delay":
        job.release(delay=0.05)
        return events.RELEASED
    if chosen == "fail":
        is_last = job.failures >= RETRIES
        job.fail("poison")
        return events.REJECTED if is_last else events.RELEASED
    if chosen == "reject":
        job.reject("no luck")
        return events.REJECTED
    if chosen == "renew":
        job.renew(wait=True)
    job.ack(wait=True)
    return events.ACKED


def left(queue: embedlog.Queue) -> int:
    """Return the number of jobs that are not settled."""
    found = queue.stats()
    return found.ready + found.locked + found.delayed


def dead(path: str) -> list[str]:
    """Return the dead jobs. Requires: no process has the directory open."""
    settings = {"group_share_min_record_lock_duration_ms": 1_000}
    with embedlog.open(path, **settings) as cluster, open_queue(cluster) as queue:
        return [each.value for each in queue.dead]
