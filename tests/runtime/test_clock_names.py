"""Clocks that exist only as a name."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import time

real = time.clock_gettime_ns

def without(clock):
    if clock in (time.CLOCK_BOOTTIME, time.CLOCK_TAI):
        raise OSError(22, "Invalid argument")
    return real(clock)

time.clock_gettime_ns = without
import embedlog
from embedlog.runtime.clock import Clock

with embedlog.open() as cluster:
    cluster.create_topic("events", 1)
assert abs(Clock().elapsed_ms() - Clock().monotonic_ms()) < 1000
assert abs(Clock().wall_ms() - time.time_ns() // 1_000_000) < 60_000
"""


def test_a_cluster_opens_where_clocks_are_only_names() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=60)
