"""Share sessions: open, follow, close, and every way to be wrong; what the session remembers."""

from __future__ import annotations

from tests.golden.requests import creation, make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.sharing_requests import (
    ACCEPT,
    RELEASE,
    Sharer,
    acknowledge_request,
    begin_state,
    fetch_request,
    fill,
)
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState

MISSING_ID = bytes(range(1, 17))


@scenario_on("sharing")
def share_session_life(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    for version in (1, 2):
        group = run.group(f"v{version}")
        begin_state(run, group, topic, 0, 1)
        fill(run, topic, 3)
        one = Sharer(run, group)
        one.fetch("open with nothing", version=version, max_wait_ms=0)
        one.fetch("add partition 0", (topic, 0), version=version)
        one.acknowledge("accept", {(topic, 0): [(0, 2, [ACCEPT])]}, version=version)
        one.acknowledge("nothing to acknowledge", {}, version=version)
        one.fetch("nothing to fetch", version=version, max_wait_ms=0, max_records=2)
        one.fetch("drain", version=version, max_wait_ms=0)
        one.fetch("add partition 1", (topic, 1), version=version, max_wait_ms=200)
        one.fetch("forget both", version=version, forgotten=[(topic, 0), (topic, 1)])
        one.fetch("close", version=version, epoch=-1)
        one.fetch("after the close", version=version, epoch=2)
        one.acknowledge("acknowledge after the close", {}, version=version, epoch=2)


@scenario_on("sharing")
def share_session_faults(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2)
    place = (topic, 0)
    accepted = {place: [(0, 1, [ACCEPT])]}
    for version in (1, 2):
        one = Sharer(run, group, f"member-{version}")
        for epoch in (1, 5, -1, -2):
            one.fetch(f"fetch {epoch} without a session", version=version, epoch=epoch)
            one.acknowledge(
                f"acknowledge {epoch} without a session", {}, version=version, epoch=epoch
            )
        one.acknowledge("acknowledge 0", {}, version=version, epoch=0)
        one.fetch("open with acknowledgements", acknowledged=accepted, version=version, epoch=0)
        one.fetch("still none", version=version, epoch=1)
        one.open()
        one.fetch("epoch 2 is too high", version=version, epoch=2, max_wait_ms=0)
        one.fetch("epoch 1 is right", version=version, max_wait_ms=0)
        one.fetch("epoch 1 again", version=version, epoch=1, max_wait_ms=0)
        one.acknowledge("acknowledge 1 again", {}, version=version, epoch=1)
        one.acknowledge("acknowledge 0 of a session", {}, version=version, epoch=0)
        one.fetch("epoch -2", version=version, epoch=-2, max_wait_ms=0)
        one.acknowledge("acknowledge -2", {}, version=version, epoch=-2)
        one.acknowledge("epoch 2 is right", {}, version=version)
        one.acknowledge("close", {}, version=version, epoch=-1)
        one.acknowledge("close again", {}, version=version, epoch=-1)


@scenario_on("sharing")
def share_fetch_heads(run: Run) -> None:
    topic = make_topic(run)
    place = (topic, 0)
    group = run.group()
    for version in (1, 2):
        for who in (None, "", "m" * 37):
            run.send(
                fetch_request(group, who, 0, place), version, f"member {who!r}"
            )  # fmt: skip
            run.send(
                acknowledge_request(group, who, 0, {}), version, f"member {who!r}"
            )  # fmt: skip
        run.send(fetch_request(None, "one", 0, place), version, "no group")
        run.send(acknowledge_request(None, "one", 0, {}), version, "no group")
        run.send(fetch_request("", "one", 0, place, max_wait_ms=0), version, "group of no letters")
        run.send(acknowledge_request("", "one", 1, {}), version, "group of no letters")
        run.send(
            fetch_request(run.group("unknown"), "m" * 36, 0, place, max_wait_ms=300),
            version, "group without state",
        )  # fmt: skip
        run.send(
            fetch_request(run.group("unknown"), "m" * 36, 1, max_wait_ms=300),
            version, "the error comes again",
        )  # fmt: skip
    for field in ("max_wait_ms", "min_bytes", "max_bytes", "max_records"):
        zeros = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
        run.send(
            fetch_request(group, "two", 0, place, is_renew_ack=True, **{**zeros, field: 1}),
            2, f"renewal with {field}",
        )  # fmt: skip
    run.send(
        fetch_request(
            group, "two", 0, max_wait_ms=0, min_bytes=0, max_bytes=0, max_records=0,
            is_renew_ack=True,
        ),
        2, "renewal that opens a session",
    )  # fmt: skip


@scenario_on("sharing")
def share_fetch_places(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 1)
    unknown = (run.topic("unknown"), MISSING_ID)
    for version in (1, 2):
        one = Sharer(run, group, f"member-{version}")
        one.fetch("unknown topic", (unknown, 0), version=version, max_wait_ms=300)
        one.fetch("the error comes again", version=version, max_wait_ms=0)
        one.fetch("unknown partition", (topic, 9), version=version, max_wait_ms=0)
        one.fetch("negative partition", (topic, -1), version=version, max_wait_ms=0)
        one.fetch(
            "forget them", version=version, max_wait_ms=0,
            forgotten=[(unknown, 0), (topic, 9), (topic, -1)],
        )  # fmt: skip
        one.fetch("a good one", (topic, 0), version=version)
        one.acknowledge(
            "unknown places",
            {(unknown, 0): [(0, 0, [1])], (topic, 9): [(0, 0, [1])], (topic, 0): [(0, 0, [2])]},
            version=version,
        )
        one.acknowledge("close", {}, epoch=-1, version=version)


@scenario_on("sharing")
def share_limits_without_fetch(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 4)
    one = Sharer(run, group)
    place = (topic, 0)
    one.fetch("load", place, max_records=1)
    one.acknowledge("give it back", {place: [(0, 3, [RELEASE])]})
    one.fetch("no records", max_records=0)
    one.fetch("negative records", max_records=-1)
    one.fetch("no bytes", max_bytes=0)
    one.fetch("negative bytes", max_bytes=-1)
    one.fetch("mode 2", share_acquire_mode=2)
    one.fetch("mode -1", share_acquire_mode=-1)
    one.fetch("what is left", max_wait_ms=-1, min_bytes=-1)


@scenario_on("sharing")
def share_session_restart(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2, 2)
    place = (topic, 0)
    one = Sharer(run, group)
    one.fetch("open and lock", place, max_records=2)
    one.fetch("open again", place, epoch=0)
    one.epoch = 1
    one.acknowledge("the first locks are still held", {place: [(0, 1, [ACCEPT])]})
    one.acknowledge("and the second", {place: [(2, 3, [ACCEPT])]})
    one.fetch("close", epoch=-1)


@scenario_on("sharing")
def share_session_close_releases(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    group = run.group()
    begin_state(run, group, topic, 0, 1)
    fill(run, topic, 4)
    fill(run, topic, 2, partition=1)
    place, other = (topic, 0), (topic, 1)
    one, two = Sharer(run, group), Sharer(run, group, "two")
    one.fetch("lock partition 0", place)
    one.fetch("lock partition 1", other)
    one.fetch("forget partition 1", max_wait_ms=0, forgotten=[other])
    one.acknowledge("close with an acknowledgement", {place: [(0, 1, [ACCEPT])]}, epoch=-1)
    two.fetch("partition 0 is free, without 0 and 1", place)
    two.fetch("partition 1 is locked", other, max_wait_ms=200)
    two.fetch("close by a fetch", acknowledged={place: [(2, 2, [ACCEPT])]}, epoch=-1)
    one.epoch = 0
    one.fetch("only 3 is left", place)


@scenario_on("sharing")
def share_session_disconnect(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2)
    place = (topic, 0)
    one, two = Sharer(run, group, on="a"), Sharer(run, group, "two")
    two.open(place)
    one.fetch("lock", place)
    two.fetch("nothing is free", max_wait_ms=0)
    run._hang_up("a")
    run.let_pass(500)
    two.fetch("after the connection broke", max_wait_ms=1000)
    again = Sharer(run, group, on="b")
    again.fetch("its session has gone", epoch=1)


@scenario_on("sharing")
def share_session_of_two_connections(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2, 2)
    place = (topic, 0)
    first, second = Sharer(run, group, "first", on="a"), Sharer(run, group, "second", on="a")
    first.fetch("lock two", place, max_records=2)
    second.fetch("lock two", place, max_records=2)
    first.on = second.on = "b"
    first.fetch("another connection continues the session", max_wait_ms=0)
    run._hang_up("a")
    run.let_pass(500)
    second.fetch("the session opened last has gone", max_wait_ms=0)
    first.fetch("the other is there", max_wait_ms=1000)


@scenario_on("few share sessions")
def share_session_limit(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    members = [Sharer(run, group, f"member-{number}") for number in range(3)]
    for member in members[:2]:
        member.fetch("open", max_wait_ms=0)
    members[2].begin_fetch("one too many waits", max_wait_ms=900)
    members[2].finish()
    members[0].fetch("open again", epoch=0, max_wait_ms=0)
    members[0].fetch("close", epoch=-1)
    members[2].fetch("there is room", epoch=0, max_wait_ms=0)
    members[1].fetch("close the other", epoch=-1)
    members[2].fetch("close", epoch=-1)


@scenario_on("sharing")
def share_topic_deleted(run: Run) -> None:
    topic = make_topic(run)
    group = run.group()
    begin_state(run, group, topic)
    fill(run, topic, 2)
    place = (topic, 0)
    one = Sharer(run, group)
    one.fetch("lock", place)
    state = DeleteTopicState(name=topic[0])
    run.setup(DeleteTopicsRequest(topics=[state], timeout_ms=10000), 6)
    run.let_pass(1000)
    one.fetch("fetch", max_wait_ms=0)
    one.acknowledge("acknowledge", {place: [(0, 1, [ACCEPT])]})
    one.fetch("close", epoch=-1)
    run.setup(creation(topic[0]), 7)
