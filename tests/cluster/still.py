"""A cluster under a clock that a test has frozen, and waits by the machine's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import freezegun
import time_machine

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.transport import ANY_NODE
from tests.apis import groups
from wire.schemas.heartbeat import HeartbeatRequest

PLACE = ("t", 0)
FROZEN: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    "freezegun": freezegun.freeze_time,
    "time-machine": lambda moment: time_machine.travel(moment, tick=False),
}
SETTINGS: dict[str, Any] = {
    "group_min_session_timeout_ms": 1,
    "group_consumer_min_session_timeout_ms": 1,
    "group_consumer_session_timeout_ms": 100,
    "group_consumer_min_heartbeat_interval_ms": 1,
    "group_consumer_heartbeat_interval_ms": 30,
    "group_consumer_assignment_interval_ms": 50,
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": 20,
}


class Still:
    """A cluster in memory under a clock that stands still until the test moves it."""

    def __init__(self, frozen: Any, **settings: Any) -> None:
        self.frozen = frozen
        self.cluster: Cluster = embedlog.open(**{**SETTINGS, **settings})
        self.cluster.create_topic("t", config={"segment.ms": 60_000})
        self.admin = self.cluster.admin()
        self.transport = self.cluster.connect("test")

    def move(self) -> None:
        """Move the test's clock by ten days."""
        self.frozen.move_to("2030-01-11")

    def ask(self, request: Any) -> Any:
        pending = self.transport.send(ANY_NODE, request)
        assert pending.done(), request
        return pending.result()

    def first_offset(self) -> int:
        return self.admin.list_offsets({PLACE: embedlog.OffsetSpec.EARLIEST})[PLACE].offset

    def consumer(self, protocol: str = "classic", **settings: Any) -> embedlog.Consumer:
        consumer = self.cluster.consumer(
            group_id="g",
            group_protocol=protocol,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **settings,
        )
        consumer.subscribe(["t"])
        return consumer

    def classic_member(self) -> HeartbeatRequest:
        """Join a group with a session of 100 ms, and return the member's heartbeat."""
        self.cluster.broker().core.group_coordinator  # noqa: B018
        with self.cluster.consumer(group_id="g") as consumer:
            consumer.committed([PLACE])  # makes the topic of the coordinator
        joined = self.ask(groups.join(session_timeout_ms=100))
        joined = self.ask(groups.join(joined.member_id, session_timeout_ms=100))
        self.ask(groups.sync(joined.member_id, joined.generation_id))
        return groups.heartbeat(joined.member_id, joined.generation_id)

    def transaction(self, timeout_ms: int) -> embedlog.Producer:
        producer = self.cluster.producer(transactional_id="x", transaction_timeout_ms=timeout_ms)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v").result()
        return producer


def until(is_done: Callable[[], Any]) -> None:
    """Call until it returns a true value; fail after 20 s of the machine's time."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    while not is_done():
        assert time.clock_gettime(time.CLOCK_MONOTONIC) - began < 20, "it waits for ever"


def pass_machine_time(seconds: float) -> None:
    """Let the machine's time pass while nobody calls the cluster."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    until(lambda: time.clock_gettime(time.CLOCK_MONOTONIC) - began > seconds)
