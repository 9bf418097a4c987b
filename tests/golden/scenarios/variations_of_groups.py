"""Requests about groups and transactions, in all variations of `tests.golden.variations`."""

from __future__ import annotations

from itertools import count

from tests.golden.group_requests import (
    commit,
    delete_groups,
    delete_offsets,
    describe,
    describe_consumers,
    fetch_offsets,
    find,
    first_beat,
    heartbeat,
    join,
    leave,
    list_groups,
    sync,
)
from tests.golden.members import Member, gather, warm_up
from tests.golden.requests import Topic, is_written, make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    add,
    add_offsets,
    batch,
    began,
    end,
    init,
    markers,
    owned,
    register,
    transaction,
    txn_commit,
    warm_up_transactions,
)
from tests.golden.variations import vary
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.list_transactions import ListTransactionsRequest
from wire.schemas.write_txn_markers import WritableTxnMarkerTopic, WriteTxnMarkersRequest

MISSING_ID = bytes(range(16))
OFFSETS = "__consumer_offsets"
TIES = (
    ("ba", "ab"),
    (("range", "roundrobin"), ("roundrobin", "range")),
    (("roundrobin", "range"), ("range", "roundrobin")),
    (("sticky", "cooperative-sticky"), ("cooperative-sticky", "sticky")),
    ("abc", "bca", "cab"),
    ("cab", "bca", "abc"),
    tuple("abcdefghijklmnopqrstuvwxyz"[-n:] + "abcdefghijklmnopqrstuvwxyz"[:-n] for n in range(9)),
)
"""Protocols of the members of a group, in the order of their preference."""
LAST_WITHOUT_ID = 3
"""The last version of JoinGroup that takes a member without an id at once."""


@scenario_on("groups")
def variations_of_joining(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    numbers = count()
    protocols = [("range", b"r"), ("sticky", b"s")]
    vary(
        run, LAST_WITHOUT_ID,
        lambda: join(run.group(f"j{next(numbers)}"), protocols=protocols),
        without=(
            "group_id ''",
            "protocols with an entry twice",  # Kafka waits for another member
        ),
    )  # fmt: skip
    vary(
        run, 1,
        lambda: first_beat(
            run.group(f"c{next(numbers)}"), "m", topic[0], owns=[(topic, [0])], assignor="range"
        ),
    )  # fmt: skip


@scenario_on("groups")
def votes_that_tie(run: Run) -> None:
    warm_up(run)
    for number, orders in enumerate(TIES):
        leader, *others = (
            Member(run, run.group(f"tie{number}"), str(index), protocols=[(n, b"") for n in names])
            for index, names in enumerate(orders)
        )
        leader.enter()
        for member in others:
            member.get_id()
            member.begin_join(keep=False)
        leader.join(f"members who prefer {', '.join(names[0] for names in orders)}")
        for member in others:
            member.finish_join(keep=False)


@scenario_on("groups")
def variations_of_membership(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    group = run.group()
    (member,) = gather([Member(run, group, "a")])
    for version in (0, 4):
        vary(run, version, lambda: heartbeat(group, member.id, member.generation))
    for version in (3, 5):
        vary(
            run, version,
            lambda: sync(group, member.id, member.generation, {member.id: b"a", "other": b"b"}),
        )  # fmt: skip
    for version in (2, 9, 10):
        vary(
            run, version,
            lambda v=version: commit(
                group, topic, (0, 1, "m"), version=v, member=member.id,
                generation=member.generation,
            ),
        )  # fmt: skip
    _commit_twice(run, member, topic)
    for version in (1, 5, 7, 8, 9, 10):
        vary(run, version, lambda v=version: fetch_offsets(group, (topic, [0]), version=v))
    vary(run, 0, lambda: delete_offsets(group, (topic[0], [0])))
    vary(run, 5, lambda: describe(group))
    vary(run, 1, lambda: describe_consumers(group))
    vary(run, 5, lambda: list_groups(states=["Stable"], types=["classic"]))
    for version in (4, 6):
        vary(run, version, lambda: find(group))
    vary(run, 2, lambda: delete_groups(group))
    vary(run, 5, lambda: leave(group, "nobody", member.id))


def _commit_twice(run: Run, member: Member, topic: Topic) -> None:
    """Commits that name a topic twice, which exists or not, with partitions that exist or not."""
    missing = (run.topic("none"), MISSING_ID)
    for version in (2, 9, 10):
        for rows in (
            ((topic, 0), (topic, 0)),
            ((topic, 0), (topic, 7)),
            ((topic, 7), (topic, 0)),
            ((topic, 7), (topic, 7)),
            ((missing, 0), (missing, 0)),
            ((missing, 0), (missing, 1)),
            ((topic, 0), (missing, 0), (topic, 0)),
        ):
            requests = [
                commit(
                    member.group, each, (partition, 1, "m"), version=version, member=member.id,
                    generation=member.generation,
                )
                for each, partition in rows
            ]  # fmt: skip
            whole = requests[0]
            whole.topics += [each.topics[0] for each in requests[1:]]
            note = ", ".join(f"{each[0][-4:]} {partition}" for each, partition in rows)
            run.send(whole, version, note)


@scenario_on("transactions")
def variations_of_transactions(run: Run) -> None:
    warm_up_transactions(run)
    topic, group = make_topic(run), run.group("offsets")
    numbers = count()

    def fresh() -> str:
        return run.group(f"t{next(numbers)}")

    vary(run, 4, lambda: init(fresh()))
    known = run.group("known")
    producer = owned(run, known)
    vary(run, 3, lambda: add(known, producer, (topic, 0)))
    vary(
        run, 5, lambda: register(transaction(known, producer, (topic, 0))),
        without=("transactions empty",),  # Kafka never answers it
    )  # fmt: skip
    vary(run, 3, lambda: add_offsets(known, producer, group))
    for version in (2, 5, 6):
        vary(
            run, version,
            lambda v=version: txn_commit(known, producer, group, topic, (0, 1, "m"), version=v),
        )  # fmt: skip
    vary(run, 0, lambda: DescribeTransactionsRequest(transactional_ids=[known]))
    vary(
        run, 1,
        lambda: ListTransactionsRequest(
            state_filters=["Ongoing"], producer_id_filters=[producer[0]], duration_filter=-1
        ),
        without=("producer_id_filters empty",),
    )  # fmt: skip
    vary(run, 3, lambda: end(known, producer))


@scenario_on("transactions")
def variations_of_markers(run: Run) -> None:
    warm_up_transactions(run)
    numbers = count()

    def request() -> WriteTxnMarkersRequest:
        name = f"m{next(numbers)}"
        topic = make_topic(run, name)
        producer = began(run, run.group(name), (topic, 0))
        data = produce(topic, 9, batch(producer, b"a"), transactional_id=run.group(name))
        run.until(is_written, data, 9, keep=False)
        return markers(producer, (topic, 0), commit=False)

    for version in (1, 2):
        vary(
            run, version, request,
            without=(
                # Kafka never answers these.
                "markers.topics with an entry twice",
                "markers.topics.partition_indexes with an entry twice",
            ),
        )  # fmt: skip
    for note, change in (
        ("a topic that is missing", {}),
        ("producer -1, and a topic that is missing", {"producer_id": -1}),
        ("epoch -1, and a topic that is missing", {"producer_epoch": -1}),
        ("transaction version -1, and a topic that is missing", {"transaction_version": -1}),
    ):
        changed, whole, other = request(), request(), request()
        (marker,) = changed.markers
        marker.topics.append(WritableTxnMarkerTopic(name=run.topic("none"), partition_indexes=[0]))
        marker.topics.append(WritableTxnMarkerTopic(name=OFFSETS, partition_indexes=[0, 99]))
        marker.topics.append(WritableTxnMarkerTopic(name=run.topic("empty")))
        for name, value in change.items():
            setattr(marker, name, value)
        whole.markers += [marker, *other.markers]
        run.send(whole, 2, f"{note}, between two others")
    first, second = request(), request()
    second.markers[0].producer_id = first.markers[0].producer_id
    first.markers += second.markers
    run.send(first, 2, "a producer twice, with two topics")
