"""The parts of a transaction: AddPartitionsToTxn, AddOffsetsToTxn, Produce, markers, readers."""

from __future__ import annotations

from typing import Any

from embedlog.coordinator.placement import partition_of
from tests.golden.group_requests import fetch_offsets
from tests.golden.requests import fetch, list_offsets, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    Producer,
    add,
    add_offsets,
    batch,
    began,
    end,
    ended,
    init,
    markers,
    owned,
    register,
    settle,
    transaction,
    txn_commit,
    warm_up_transactions,
)
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest
from wire.schemas.describe_transactions import DescribeTransactionsRequest

V = 12
COMMITTED = 1
STUCK_MS = 300
"""Long enough for an attempt of the coordinator."""


@scenario_on("transactions")
def add_partitions_versions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=3)
    unknown = run.topic("unknown")
    for v in range(4):
        name = run.group(f"v{v}")
        producer = owned(run, name)
        pid, epoch = producer
        run.send(add(name, producer, (topic, 0)), v, "one partition")
        run.send(add(name, producer, (topic, 0)), v, "the same again")
        run.send(add(name, producer, (topic, 1), (topic, 2)), v, "two more")
        run.send(add(name, producer, (topic, 0), (topic, 7)), v, "an unknown partition")
        run.send(add(name, producer, (topic, 0), (unknown, 0)), v, "an unknown topic")
        run.send(add(name, producer, (unknown, 0), (unknown, 1)), v, "nothing that is known")
        run.send(add(name, producer, ("__consumer_offsets", 0)), v, "an internal topic")
        run.send(add(name, producer, ("__consumer_offsets", 0), (topic, 0)), v, "one among others")
        run.send(add(name, producer, ("a b", 0)), v, "an illegal name")
        run.send(add(name, producer), v, "no topics")
        run.send(add(name, (pid, epoch + 1), (topic, 0)), v, "an epoch to come")
        run.send(add(name, (pid, -1), (topic, 0)), v, "epoch -1")
        run.send(add(name, (pid + 7000, epoch), (topic, 0)), v, "another producer id")
        run.send(add(run.group("nobody"), producer, (topic, 0)), v, "an unknown id")
        run.send(add("", producer, (topic, 0)), v, "an empty id")
        after = ended(run, name, producer)
        run.send(add(name, producer, (topic, 0)), v, "after the end, with the old epoch")
        run.send(add(name, after, (topic, 0)), v, "after the end")
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, "as described")


@scenario_on("transactions")
def register_partitions(run: Run) -> None:
    """Versions 4 and 5, which brokers send."""
    warm_up_transactions(run)
    topic = make_topic(run, partitions=3)
    unknown = run.topic("unknown")
    for v in (4, 5):
        for looks in (False, True):
            note = "verify: " if looks else ""
            name, other = run.group(f"v{v} {looks}"), run.group(f"v{v} {looks} other")
            mine, its = owned(run, name), owned(run, other)
            if looks:
                run.setup(add(name, mine, (topic, 0)), 3)

            def send(what: str, *of: Any, v: int = v) -> None:
                run.send(register(*of), v, what)

            def one(*partitions: Any, who: str = name, by: Producer = mine,
                    looks: bool = looks) -> Any:  # fmt: skip
                return transaction(who, by, *partitions, verify_only=looks)

            send(f"{note}one partition", one((topic, 0)))
            send(f"{note}the same again", one((topic, 0)))
            send(f"{note}two", one((topic, 0), (topic, 1)))
            both = one((topic, 0)), one((topic, 2), who=other, by=its)
            send(f"{note}of two ids", *both)
            send(f"{note}an unknown partition", one((topic, 0), (topic, 7)))
            send(f"{note}an unknown topic", one((unknown, 0)))
            send(f"{note}an internal topic", one(("__consumer_offsets", 0)))
            send(f"{note}an epoch to come", one((topic, 0), by=(mine[0], 1)))
            send(f"{note}another producer", one((topic, 0), by=(mine[0] + 7000, 0)))
            send(f"{note}an unknown id", one((topic, 0), who=run.group("nobody")))
            send(f"{note}an empty id", one((topic, 0), who=""))
            send(f"{note}no topics", one())
            run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, f"{note}described")


@scenario_on("transactions")
def add_offsets_versions(run: Run) -> None:
    warm_up_transactions(run)
    for v in range(5):
        name = run.group(f"v{v}")
        producer = pid, epoch = owned(run, name)
        run.send(add_offsets(name, producer, run.group("of")), v, "a group")
        run.send(add_offsets(name, producer, run.group("of")), v, "the same again")
        run.send(add_offsets(name, producer, ""), v, "the empty group")
        run.send(add_offsets(name, (pid, epoch + 1), run.group()), v, "an epoch to come")
        run.send(add_offsets(name, (pid + 7000, epoch), run.group()), v, "another producer id")
        run.send(add_offsets(run.group("nobody"), producer, run.group()), v, "an unknown id")
        run.send(add_offsets("", producer, run.group()), v, "an empty id")
        run.send(end(name, producer), 5, "commit")
        settle(run, name)
        run.send(add_offsets(name, producer, run.group("of")), v, "after the end")


@scenario_on("transactions")
def produce_in_transactions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=4)
    for v in (3, 7, 9, 10, 11, 12, 13):
        name = run.group(f"v{v}")
        mine = pid, epoch = owned(run, name)

        def send(what: str, data: bytes, partition: int = 0, by: str | None = name,
                 v: int = v) -> None:  # fmt: skip
            request = produce(topic, v, data, transactional_id=by, partition=partition)
            run.send(request, v, what)

        send("not added", batch(mine, b"a"))
        run.setup(add(name, mine, (topic, 1)), 3)
        send("added", batch(mine, b"a"), 1)
        send("its next batch", batch(mine, b"b", sequence=1), 1)
        send("the same again", batch(mine, b"b", sequence=1), 1)
        send("plain records of the producer", batch(mine, b"b", sequence=2, transactional=False), 1)
        send("a gap", batch(mine, b"b", sequence=5), 1)
        send("an epoch to come", batch((pid, epoch + 1), b"b"), 1)
        send("another producer", batch((pid + 7000, 0), b"b"), 1)
        send("plain records of nobody", batch((-1, -1), b"n", sequence=-1, transactional=False), 1)
        send("without a transactional id", batch(mine, b"b", sequence=2), 1, None)
        send("of an unknown id", batch(mine, b"b", sequence=2), 2, run.group("nobody"))
        send("of an empty id", batch(mine, b"b", sequence=2), 2, "")
        run.setup(add(name, mine, (topic, 3)), 3)
        send("a first sequence that is not 0", batch(mine, b"b", sequence=4), 3)
        ended(run, name, mine)
        send("after the end", batch(mine, b"c", sequence=2), 1)
        send("after the end, elsewhere", batch(mine, b"c"), 2)
        send("after the end, the next epoch", batch((pid, epoch + 1), b"c"), 1)
        producers = DescribeProducersRequest(
            topics=[TopicRequest(name=topic[0], partition_indexes=[0, 1, 2, 3])]
        )
        settle(run, name)
        run.send(producers, 0, f"producers after {v}")
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, f"described after {v}")
        owned(run, name)


@scenario_on("transactions")
def read_transactions(run: Run) -> None:
    """Readers of both isolation levels before, in and after transactions."""
    warm_up_transactions(run)
    topic = make_topic(run)

    def show(note: str) -> None:
        for v in (4, 6, 11, 12, 13):
            for isolation in (0, COMMITTED):
                request = fetch(topic, v, isolation_level=isolation)
                run.send(request, v, f"{note}: isolation {isolation}")
        for v in (2, 5, 8, 10):
            for isolation in (0, COMMITTED):
                for timestamp in (-1, -2):
                    asked = list_offsets(topic[0], timestamp, isolation_level=isolation)
                    run.send(asked, v, f"{note}: {timestamp}, isolation {isolation}")

    show("empty")
    one, two = run.group("one"), run.group("two")
    first, second = began(run, one, (topic, 0)), began(run, two, (topic, 0))
    run.setup(produce(topic, 9, batch(first, b"1"), transactional_id=one), 9)
    run.setup(produce(topic, 9, batch(second, b"2", b"3"), transactional_id=two), 9)
    run.setup(produce(topic, 9, batch((-1, -1), b"p", sequence=-1, transactional=False)), 9)
    show("two open")
    ended(run, two, second, commit=False)
    show("the second aborted")
    ended(run, one, first)
    show("the first committed")
    third = began(run, two, (topic, 0))
    run.setup(produce(topic, 9, batch(third, b"4"), transactional_id=two), 9)
    show("a third open")
    past = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic[0],
                partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)],
            )
        ],
        timeout_ms=5000,
    )
    run.send(past, 2, "delete all records inside the open transaction")
    show("its records deleted")
    ended(run, two, third)
    show("and it committed")


@scenario_on("transactions")
def write_markers(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=6)
    unknown = run.topic("unknown")
    for v in (1, 2):
        for version in (0, 1, 2) if v == 2 else (0,):
            name = run.group(f"v{v} t{version}")
            mine = pid, epoch = began(run, name, (topic, 0))
            note = f"version {version}: "
            how = {"transaction_version": version, "coordinator_epoch": 5}

            def send(what: str, by: Producer, *partitions: Any, v: int = v,
                     **fields: Any) -> None:  # fmt: skip
                run.send(markers(by, *partitions, **fields), v, what)

            run.setup(produce(topic, 9, batch(mine, b"1"), transactional_id=name), 9)
            send(note + "an unknown topic", mine, (unknown, 0), **how)
            send(note + "an unknown partition", mine, (topic, 9), (topic, 1), **how)
            send(note + "without state", (pid + 7000, 3), (topic, 2), **how)
            send(note + "the present epoch", mine, (topic, 0), **how)
            send(note + "the present epoch again", mine, (topic, 0), **how)
            send(note + "the next epoch", (pid, epoch + 1), (topic, 0), **how)
            send(note + "the next epoch again", (pid, epoch + 1), (topic, 0), **how)
            send(note + "the epoch before", mine, (topic, 0), **how)
            late = {**how, "coordinator_epoch": 4}
            send(note + "an older coordinator", (pid, epoch + 2), (topic, 0), **late)
            send(note + "no partitions", mine, **how)
            offsets = ("__consumer_offsets", 3)
            send(note + "offsets of nobody", (pid, epoch + 2), offsets, **how)
            producers = DescribeProducersRequest(
                topics=[TopicRequest(name=topic[0], partition_indexes=[0, 1, 2])]
            )
            run.send(producers, 0, note + f"producers after {v}")
            run.send(fetch(topic, 12, isolation_level=COMMITTED), 12, note + f"records after {v}")


@scenario_on("transactions")
def decided_and_not_told(run: Run) -> None:
    """A partition refuses the marker of a decided transaction: no other transaction begins.

    The partition has a marker with a later coordinator epoch, which fences the present coordinator.
    """
    warm_up_transactions(run)
    topic = make_topic(run, partitions=2)
    group = run.group("of")
    for end_version, commit in ((4, True), (5, True), (5, False)):
        name = run.group(f"v{end_version} {commit}")
        mine = pid, epoch = began(run, name, (topic, 0), (topic, 1))
        run.setup(add_offsets(name, mine, group), 3)
        run.setup(produce(topic, 9, batch(mine, b"1"), transactional_id=name), 9)
        run.setup(markers(mine, (topic, 0), coordinator_epoch=1), 1)
        run.send(end(name, mine, commit=commit), end_version, f"{name}: decide")
        run.let_pass(STUCK_MS)
        note = f"v{end_version} {commit}: "
        for step in (-1, 0, 1):
            who = pid, epoch + step
            if who[1] < 0:
                continue
            what = f"{note}epoch {step:+}, "
            run.send(init(name, who), 5, f"{what}go on")
            run.send(add(name, who, (topic, 1)), 3, f"{what}add")
            run.send(add(name, who, (topic, 1)), 1, f"{what}add")
            run.send(register(transaction(name, who, (topic, 1))), 5, f"{what}register")
            looks = transaction(name, who, (topic, 1), verify_only=True)
            run.send(register(looks), 4, f"{what}verify")
            run.send(add_offsets(name, who, group), 4, f"{what}add offsets")
            for v in (0, 1, 2, 4, 5):
                run.send(end(name, who), v, f"{what}commit")
                run.send(end(name, who, commit=False), v, f"{what}abort")
            for v in (3, 8, 10, 11, 12):
                data = batch(who, b"2")
                request = produce(topic, v, data, transactional_id=name, partition=1)
                run.send(request, v, f"{what}produce")
            for v in range(6):
                request = txn_commit(name, who, group, topic, (0, 5), version=v)
                run.send(request, v, f"{what}commit offsets")
        other = pid + 7000, epoch
        for v in (0, 3, 5):
            run.send(init(name), v, f"{note}begin anew")
            run.send(end(name, other), v, f"{note}commit of another producer")
        run.send(add(name, other, (topic, 1)), 3, f"{note}add of another producer")
        looks = transaction(name, other, (topic, 1), verify_only=True)
        run.send(register(looks), 4, f"{note}verify of another producer")
        run.send(init(name, other), 5, f"{note}go on as another producer")
        run.send(init(name, timeout_ms=0), 5, f"{note}no time-out")
        producers = DescribeProducersRequest(
            topics=[TopicRequest(name=topic[0], partition_indexes=[0, 1])]
        )
        run.send(producers, 0, f"{note}producers")
        for isolation in (0, COMMITTED):
            run.send(fetch(topic, 12, isolation_level=isolation), 12, f"{note}records")
        run.send(DescribeTransactionsRequest(transactional_ids=[name]), 0, f"{note}described")


@scenario_on("transactions")
def partitions_that_know_a_later_epoch(run: Run) -> None:
    """The coordinator accepts the end, but the partition has a marker of the next epoch."""
    warm_up_transactions(run)
    topic = make_topic(run, partitions=2)
    for v in (3, 8, 10, 11, 12, 13):
        name = run.group(f"v{v}")
        mine = pid, epoch = began(run, name, (topic, 0), (topic, 1))
        first = batch(mine, b"1")
        run.setup(produce(topic, 9, first, transactional_id=name), 9)
        run.send(markers((pid, epoch + 1), (topic, 0), (topic, 1)), 1, f"{v}: markers")
        for partition in (0, 1):
            for sequence in (0, 1, 5):
                data = batch(mine, b"2", sequence=sequence)
                request = produce(topic, v, data, transactional_id=name, partition=partition)
                run.send(request, v, f"produce {partition} from {sequence}")
        data = batch((pid, epoch + 1), b"2")
        run.send(produce(topic, v, data, transactional_id=name), v, "produce with that epoch")
    for v in range(7):
        name, group = run.group(f"offsets v{v}"), run.group(f"g{v}")
        mine = pid, epoch = owned(run, name)
        run.setup(add_offsets(name, mine, group), 3)
        run.setup(txn_commit(name, mine, group, topic, (0, 1), version=5), 5)
        offsets = "__consumer_offsets", partition_of(group, 50)
        run.send(markers((pid, epoch + 1), offsets), 1, f"{v}: marker of offsets")
        request = txn_commit(name, mine, group, topic, (0, 5), version=v)
        run.send(request, v, "commit offsets")
        run.send(fetch_offsets(group, everything=True, require_stable=True), 9, "offsets")
