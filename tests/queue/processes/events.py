"""`Event`: one line that a process of a story wrote about a job.

    put JOB              the job is durable
    got JOB BEGAN COUNT  a worker has the job, in its COUNTth delivery; it began to ask at BEGAN
    trying JOB - COPIES  the worker is about to settle the job; COPIES is 1 if that appends a copy
    acked JOB ENDED      the acknowledgement was answered
    rejected JOB ENDED   the rejection was answered
    released JOB ENDED   the release was answered
    unsure JOB           the settlement failed: the job may come again

Times are microseconds of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import time
from typing import NamedTuple

PUT = "put"
GOT = "got"
TRYING = "trying"
ACKED = "acked"
REJECTED = "rejected"
RELEASED = "released"
UNSURE = "unsure"


class Event(NamedTuple):
    """A line of a process. `pid` is the process; `at_us` and `count` are 0 if the line has none."""

    pid: int
    kind: str
    job: str
    at_us: int = 0
    count: int = 0

    def line(self) -> bytes:
        """Return the line, without the pid."""
        return f"{self.kind} {self.job} {self.at_us} {self.count}".encode()


def parse(pid: int, line: bytes) -> Event:
    """Return the event of a line that a process wrote."""
    kind, job, at_us, count = line.decode().split()
    return Event(pid, kind, job, int(at_us), int(count))


def now_us() -> int:
    """Return the time."""
    return time.monotonic_ns() // 1_000
