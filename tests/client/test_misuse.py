"""Every public call of every client: after `close`, and while another thread is inside.

The tables hold all calls, so that a new call needs an entry.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import Admin, Consumer, IllegalState, Producer, WakeupError
from embedlog.client.errors import ConcurrentUse
from embedlog.errors import ClosedError

Connect = Callable[[], Any]
Call = Callable[[Any], Any]

HERE = ("events", 0)

CONSUMER: dict[str, Call] = {
    "__iter__": lambda consumer: next(iter(consumer)),
    "assign": lambda consumer: consumer.assign([HERE]),
    "assignment": lambda consumer: consumer.assignment(),
    "beginning_offsets": lambda consumer: consumer.beginning_offsets([HERE]),
    "commit": lambda consumer: consumer.commit(),
    "commit_async": lambda consumer: consumer.commit_async(),
    "consumed_offsets": lambda consumer: consumer.consumed_offsets(),
    "committed": lambda consumer: consumer.committed([HERE]),
    "current_lag": lambda consumer: consumer.current_lag(HERE),
    "end_offsets": lambda consumer: consumer.end_offsets([HERE]),
    "enforce_rebalance": lambda consumer: consumer.enforce_rebalance(),
    "group_metadata": lambda consumer: consumer.group_metadata(),
    "list_topics": lambda consumer: consumer.list_topics(),
    "offsets_for_times": lambda consumer: consumer.offsets_for_times({HERE: 0}),
    "partitions_for": lambda consumer: consumer.partitions_for("events"),
    "pause": lambda consumer: consumer.pause(HERE),
    "paused": lambda consumer: consumer.paused(),
    "poll": lambda consumer: consumer.poll(),
    "poll_batches": lambda consumer: consumer.poll_batches(),
    "poll_columns": lambda consumer: consumer.poll_columns(),
    "position": lambda consumer: consumer.position(HERE),
    "resume": lambda consumer: consumer.resume(HERE),
    "seek": lambda consumer: consumer.seek(HERE, 0),
    "seek_to_beginning": lambda consumer: consumer.seek_to_beginning(HERE),
    "seek_to_end": lambda consumer: consumer.seek_to_end(HERE),
    "subscribe": lambda consumer: consumer.subscribe(["events"]),
    "subscription": lambda consumer: consumer.subscription(),
    "unassign": lambda consumer: consumer.unassign(),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
}
CONSUMER_ANY_TIME = {"close", "metrics", "wakeup"}

OFFSETS = ({HERE: 0}, embedlog.ConsumerGroupMetadata("readers"))
PREPARED = embedlog.PreparedTransaction(1, 1)

TRANSACTIONS: dict[str, Call] = {
    "init_transactions": lambda producer: producer.init_transactions(),
    "begin_transaction": lambda producer: producer.begin_transaction(),
    "send_offsets_to_transaction": lambda producer: producer.send_offsets_to_transaction(*OFFSETS),
    "prepare_transaction": lambda producer: producer.prepare_transaction(),
    "complete_transaction": lambda producer: producer.complete_transaction(PREPARED),
    "commit_transaction": lambda producer: producer.commit_transaction(),
    "abort_transaction": lambda producer: producer.abort_transaction(),
    "transaction": lambda producer: producer.transaction(),
}
"""Calls of a producer with a transactional.id."""

PRODUCER: dict[str, Call] = {
    "append": lambda producer: producer.append("events", b"value", timeout=10),
    "flush": lambda producer: producer.flush(),
    "partitions_for": lambda producer: producer.partitions_for("events"),
    "send": lambda producer: producer.send("events", b"value"),
    "send_batch": lambda producer: producer.send_batch("events", [b"value"]),
}
PRODUCER_ANY_TIME = {"close", "metrics"}

ADMIN: dict[str, Call] = {
    "abort_transaction": lambda admin: admin.abort_transaction(HERE, 1, 0),
    "alter_configs": lambda admin: admin.alter_configs({("topic", "events"): {}}),
    "describe_share_groups": lambda admin: admin.describe_share_groups(["group"]),
    "list_share_group_offsets": lambda admin: admin.list_share_group_offsets(["group"]),
    "alter_share_group_offsets": lambda admin: admin.alter_share_group_offsets("group", {HERE: 0}),
    "delete_share_group_offsets": lambda admin: admin.delete_share_group_offsets(
        "group", ["events"]
    ),
    "alter_group_offsets": lambda admin: admin.alter_group_offsets("group", {HERE: 0}),
    "create_partitions": lambda admin: admin.create_partitions({"events": 2}),
    "create_topics": lambda admin: admin.create_topics(["events"]),
    "delete_group_offsets": lambda admin: admin.delete_group_offsets("group", [HERE]),
    "delete_groups": lambda admin: admin.delete_groups(["group"]),
    "delete_records": lambda admin: admin.delete_records({HERE: 0}),
    "delete_topics": lambda admin: admin.delete_topics(["events"]),
    "describe_cluster": lambda admin: admin.describe_cluster(),
    "describe_configs": lambda admin: admin.describe_configs([("topic", "events")]),
    "describe_groups": lambda admin: admin.describe_groups(["group"]),
    "describe_log_dirs": lambda admin: admin.describe_log_dirs(),
    "describe_quorum": lambda admin: admin.describe_quorum(),
    "describe_replica_log_dirs": lambda admin: admin.describe_replica_log_dirs([("events", 0, 1)]),
    "elect_leaders": lambda admin: admin.elect_leaders(0, [HERE]),
    "alter_partition_reassignments": lambda admin: admin.alter_partition_reassignments({HERE: [1]}),
    "list_partition_reassignments": lambda admin: admin.list_partition_reassignments(),
    "alter_replica_log_dirs": lambda admin: admin.alter_replica_log_dirs({("events", 0, 1): "/a"}),
    "unregister_broker": lambda admin: admin.unregister_broker(1),
    "describe_producers": lambda admin: admin.describe_producers([HERE]),
    "describe_transactions": lambda admin: admin.describe_transactions(["id"]),
    "fence_producers": lambda admin: admin.fence_producers(["id"]),
    "list_transactions": lambda admin: admin.list_transactions(),
    "describe_topics": lambda admin: admin.describe_topics(["events"]),
    "incremental_alter_configs": lambda admin: admin.incremental_alter_configs(
        {("topic", "events"): {}}
    ),
    "list_group_offsets": lambda admin: admin.list_group_offsets(["group"]),
    "list_groups": lambda admin: admin.list_groups(),
    "list_offsets": lambda admin: admin.list_offsets({HERE: -1}),
    "list_topics": lambda admin: admin.list_topics(),
    "remove_members": lambda admin: admin.remove_members("group"),
}
ADMIN_ANY_TIME = {"close"}


@pytest.mark.parametrize(
    ("client", "calls", "any_time"),
    [
        (Consumer, CONSUMER, CONSUMER_ANY_TIME),
        (Producer, {**PRODUCER, **TRANSACTIONS}, PRODUCER_ANY_TIME),
        (Admin, ADMIN, ADMIN_ANY_TIME),
    ],
    ids=["Consumer", "Producer", "Admin"],
)
def test_the_tables_hold_every_call(client: type, calls: Any, any_time: set[str]) -> None:
    public = {each for each in dir(client) if not each.startswith("_")}
    assert public == {each for each in calls if not each.startswith("_")} | any_time


@pytest.fixture
def reach(connect: Connect) -> Connect:
    """Return a target: a cluster with a topic."""
    with Admin(connect()) as admin:
        admin.create_topics(["events"]).check()
    return connect


@pytest.mark.slow
@pytest.mark.parametrize("was_used", [False, True], ids=["fresh", "used"])
def test_a_closed_consumer_says_so(reach: Connect, was_used: bool) -> None:
    consumer = Consumer(reach(), group_id="readers")
    if was_used:
        consumer.subscribe(["events"])
        consumer.poll(100)
    consumer.close()
    for name, call in CONSUMER.items():
        assert raised(call, consumer) is ClosedError, name
    consumer.close()
    consumer.wakeup()
    assert consumer.metrics()["assigned-partitions"] >= 0


@pytest.mark.parametrize("was_used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("linger_ms", [0, 5])
def test_a_closed_producer_says_so(reach: Connect, was_used: bool, linger_ms: int) -> None:
    producer = Producer(reach(), linger_ms=linger_ms)
    if was_used:
        producer.send("events", b"value").result(10)
    producer.close()
    for name, call in {**PRODUCER, **TRANSACTIONS}.items():
        assert raised(call, producer) is ClosedError, name
    producer.close()
    assert producer.metrics()["record-send-total"] == was_used


@pytest.mark.parametrize("was_used", [False, True], ids=["fresh", "used"])
def test_a_closed_admin_says_so(reach: Connect, was_used: bool) -> None:
    admin = Admin(reach())
    if was_used:
        admin.describe_topics(["events"])
    admin.close()
    for name, call in ADMIN.items():
        assert raised(call, admin) is ClosedError, name
    admin.close()


@pytest.mark.slow
def test_a_consumer_in_use_refuses_other_threads(reach: Connect) -> None:
    with Consumer(reach(), group_id="readers") as consumer:
        kinds: dict[str, type[BaseException] | None] = {}

        def intrude() -> None:
            for name, call in {**CONSUMER, "close": close}.items():
                kinds[name] = raised(call, consumer)
            kinds["metrics"] = raised(Consumer.metrics, consumer)
            consumer.wakeup()

        while_polling(consumer, intrude)
        assert kinds.pop("metrics") is None
        assert set(kinds.values()) == {ConcurrentUse}, kinds
        consumer.poll(0)


def close(client: Any) -> None:
    client.close()


def while_polling(consumer: Consumer, intrude: Callable[[], None]) -> None:
    """Run `intrude`, which ends with a wakeup, while this thread is in a poll."""
    thread = threading.Thread(target=intrude)

    class Begins:
        """The poll itself says that it has begun."""

        def on_partitions_assigned(self, _partitions: object) -> None:
            thread.start()

    consumer.subscribe(["events"], listener=Begins())
    with pytest.raises(WakeupError):
        consumer.poll(600_000)
    thread.join()


def test_a_consumer_may_change_hands(reach: Connect) -> None:
    with Consumer(reach(), auto_offset_reset="earliest") as consumer:
        in_thread(lambda: consumer.assign([HERE]))
        assert consumer.assignment() == {HERE}
        in_thread(lambda: consumer.poll(10))
        in_thread(consumer.close)
        assert raised(CONSUMER["poll"], consumer) is ClosedError


def test_threads_that_share_an_admin_take_turns(reach: Connect) -> None:
    with Admin(reach()) as admin:
        names = [f"topic-{number}" for number in range(12)]
        made: list[str] = []

        def make(name: str) -> None:
            admin.create_topics([name]).check()
            made.extend(admin.describe_topics([name]))

        threads = [threading.Thread(target=make, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == sorted(names)
        assert set(names) <= set(admin.list_topics())


def test_a_producer_is_everybodys(reach: Connect) -> None:
    with Producer(reach()) as producer:
        producer.send("events", b"value").result(10)
        kinds: list[type[BaseException] | None] = []
        in_thread(lambda: kinds.extend(raised(call, producer) for call in PRODUCER.values()))
        assert kinds == [None] * len(PRODUCER)
        in_thread(producer.close)
        assert raised(PRODUCER["send"], producer) is ClosedError


def test_a_transactional_producer_is_everybodys_too(reach: Connect) -> None:
    with Producer(reach(), transactional_id="me") as producer:
        producer.init_transactions()
        kinds: list[type[BaseException] | None] = []

        def use() -> None:
            for name in ("begin_transaction", "send_offsets_to_transaction", "commit_transaction"):
                kinds.append(raised(TRANSACTIONS[name], producer))
                kinds.extend(raised(call, producer) for call in PRODUCER.values())

        in_thread(use)
        sends = [IllegalState if "send" in name or name == "append" else None for name in PRODUCER]
        none = [None] * len(PRODUCER)
        assert kinds == [None, *none, None, *none, None, *sends]


NOT_AWAITED = {"commit_async"}
"""Calls that the clients for asyncio lack."""


@pytest.mark.parametrize(
    ("name", "calls"),
    [("Consumer", CONSUMER), ("Producer", {**PRODUCER, **TRANSACTIONS}), ("Admin", ADMIN)],
)
def test_closed_clients_for_asyncio_say_so(
    reach: Connect, name: str, calls: dict[str, Call]
) -> None:
    settings = {"group_id": "readers"} if name == "Consumer" else {}

    async def main() -> None:
        client = getattr(embedlog.aio, name)(reach(), **settings)
        await client.close()
        for each, call in calls.items():
            if each in NOT_AWAITED or each == "__iter__":
                continue
            with pytest.raises(ClosedError):
                answer = call(client)
                if inspect.isawaitable(answer):
                    await answer
        if name == "Consumer":
            assert [record async for record in client] == []
        await client.close()

    asyncio.run(main())


def in_thread(call: Callable[[], Any]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def raised(call: Call, client: Any) -> type[BaseException] | None:
    try:
        call(client)
    except Exception as error:
        return type(error)
    return None
