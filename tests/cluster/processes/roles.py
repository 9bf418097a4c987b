"""The work of processes that share a directory, until they are killed or their pipe is closed.

Each function returns the work of a `Child`. The work says one line for each thing that it was
promised: `sent N`, `read OFFSET N`, `topics COUNT`. Any error ends the process with a traceback.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import embedlog
from tests.crash.child import Say

TOPIC = "events"
TIMEOUT_S = 60.0
SESSION_MS = 5_000
HEARTBEAT_MS = 300
SESSIONS: dict[str, Any] = {
    "group_min_session_timeout_ms": SESSION_MS,
    "group_consumer_min_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_heartbeat_interval_ms": HEARTBEAT_MS,
    "group_consumer_heartbeat_interval_ms": HEARTBEAT_MS,
}
"""The time after which a group gives up a killed member; by default 45 s."""
CLASSIC = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS}

Work = Callable[[Say], object]


def opened(path: str, durability: str = "os") -> embedlog.SharedCluster:
    """Open the directory, or connect to its owner."""
    return embedlog.connect_or_open(path, durability=durability, **SESSIONS)


def idling(path: str) -> Work:
    """Own the directory, and do nothing else."""

    def work(say: Say) -> None:
        with opened(path):
            say(b"ready")
            while True:
                time.sleep(60)

    return work


def producing(path: str, first: int) -> Work:
    """Send one number after the other, from `first` on, and say each that was acknowledged."""

    def work(say: Say) -> None:
        with opened(path) as cluster, cluster.producer() as producer:
            say(b"ready")
            number = first
            while True:
                producer.send(TOPIC, b"%d" % number, partition=0).result(TIMEOUT_S)
                say(b"sent %d" % number)
                number += 1

    return work


def consuming(path: str, protocol: str) -> Work:
    """Read as the only member of a group; say each record before its commit.

    A process that is killed in between says it again in its next life.
    """

    def work(say: Say) -> None:
        settings: dict[str, Any] = {"group_protocol": protocol, "auto_offset_reset": "earliest"}
        if protocol == "classic":
            settings |= CLASSIC
        with (
            opened(path) as cluster,
            cluster.consumer(group_id=f"g-{protocol}", **settings) as consumer,
        ):
            consumer.subscribe([TOPIC])
            say(b"ready")
            while True:
                for record in consumer.poll(500):
                    say(b"read %d %s" % (record.offset, record.value))
                consumer.commit()

    return work


def administering(path: str) -> Work:
    """List the topics again and again."""

    def work(say: Say) -> None:
        with opened(path) as cluster, cluster.admin() as admin:
            say(b"ready")
            while True:
                say(b"topics %d" % len(admin.list_topics()))
                time.sleep(0.01)

    return work
