"""Both protocols in one group: offsets and classic requests of consumer groups, and conversion."""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import (
    assignment,
    beat,
    commit,
    delete_offsets,
    describe_consumers,
    fetch_offsets,
    fetched_group,
    first_beat,
    heartbeat,
    join,
    leave,
    list_groups,
    owned,
    subscription,
    sync,
)
from tests.golden.members import Consumers, Member, form, gather, show, warm_up
from tests.golden.requests import Topic, make_topic
from tests.golden.run import Run, scenario_on
from wire.schemas.offset_fetch import OffsetFetchRequest

V = 9


@scenario_on("groups")
def offsets_of_consumer_groups(run: Run) -> None:
    warm_up(run)
    topic, other = make_topic(run, "t", partitions=2), make_topic(run, "other")
    group = Consumers(run, run.group())
    epoch = group.join("m1", topic[0]).member_epoch
    group.join("m2", topic[0], instance="i2")
    for version in range(2, 11):
        for note, member, generation in (
            ("its own", "m1", epoch),
            ("an older epoch", "m1", epoch - 1),
            ("a newer epoch", "m1", epoch + 1),
            ("an unknown member", "nobody", epoch),
            ("nobody", "", -1),
            ("no epoch", "m1", -1),
            ("no member", "", epoch),
        ):
            request = commit(
                group.group, topic, (0, version), version=version, member=member,
                generation=generation,
            )  # fmt: skip
            run.send(request, version, note)
    for instance in ("i2", "i7"):
        request = commit(group.group, topic, (1, 5), member="m2", generation=3, instance=instance)
        run.send(request, V, f"a static member as {instance}")
    run.send(fetch_offsets(group.group, everything=True), V, "stored")
    for version in (8, 9, 10):
        for asking, at in (
            (None, -1), ("m1", epoch), ("m1", epoch - 1), ("m1", 9), ("nobody", epoch), (None, 1),
            ("m1", -1), ("", -1), ("", epoch),
        ):  # fmt: skip
            asked = fetch_offsets(
                group.group, (topic, [0]), version=version, member=asking, epoch=at
            )
            run.send(asked, version, f"fetch by {asking!r} with epoch {at}")
    for version in (9, 10):
        rows = [
            fetched_group(group.group, (topic, [0]), version=version, member="m1", epoch=epoch),
            fetched_group(run.group("no"), (topic, [0]), version=version, member="m1", epoch=1),
        ]
        run.send(OffsetFetchRequest(groups=rows), version, "fetch of two groups")
        every = fetch_offsets(group.group, version=version, everything=True, member="nobody")
        run.send(every, version, "fetch of everything by an unknown member")
    run.setup(commit(group.group, other, (0, 1), member="m1", generation=epoch), V)
    run.send(delete_offsets(group.group, (topic[0], [0]), (other[0], [0])), 0, "delete")
    run.setup(beat(group.group, "m1", -1), 1)
    run.setup(beat(group.group, "m2", -1, instance="i2"), 1)
    run.send(commit(group.group, topic, (0, 77)), V, "nobody, empty")
    run.send(commit(group.group, topic, (0, 78), version=2), 2, "nobody, empty, version 2")
    late = commit(group.group, topic, (0, 79), member="m1", generation=epoch)
    run.send(late, V, "one that left")
    run.send(delete_offsets(group.group, (topic[0], [0])), 0, "delete, empty")


@scenario_on("groups")
def classic_requests_to_consumer_groups(run: Run) -> None:
    """The requests come from unknown members, or from members of the other protocol."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    epoch = group.join("m1", topic[0], instance="i1").member_epoch
    name = group.group
    protocols = [("range", subscription(topic[0]))]
    for version in (0, 4, 5, 7, 9):
        run.send(join(name, kind="connect"), version, "another protocol type")
        run.send(join(name, kind=""), version, "no protocol type")
        run.send(join(name, protocols=[]), version, "no protocols")
        run.send(join(name, protocols=[("range", b"?")]), version, "an unreadable subscription")
        run.send(join(name, "nobody", protocols=protocols), version, "an unknown member")
        run.send(join(name, "m1", protocols=protocols), version, "the other protocol's member")
    for version in (5, 9):
        known = join(name, instance="i1", protocols=protocols)
        run.send(known, version, "an instance of the other protocol's member")
    for member in ("m1", "nobody"):
        for version in (0, 5):
            run.send(sync(name, member, epoch), version, f"sync of {member}")
        for version in (0, 4):
            run.send(heartbeat(name, member, epoch), version, f"heartbeat of {member}")
        for version in (0, 3, 5):
            if member != "m1":
                run.send(leave(name, member, version=version), version, f"leave of {member}")
    group.show("untouched but for who left")
    run.send(leave(name, ("nobody", "i1"), ("", "i7")), 5, "wrong pairs leave")
    run.send(leave(name, ("", "i1")), 5, "by instance id")
    group.show("after that")


def _classic(run: Run, group: str, name: str, *topics: Topic, **fields: Any) -> Member:
    """Make a member with a readable subscription and assignment, as conversion needs.

    It has two partitions: the server's assignors order members without partitions by a hash of the
    member id, which is random for this member.
    """
    fields = {"assigned": assignment(*(owned(topic[0], 0, 1) for topic in topics)), **fields}
    return Member(run, group, name, protocols=_protocols(*topics), **fields)


def _protocols(*topics: Topic, **fields: Any) -> list[tuple[str, bytes]]:
    names = sorted(topic[0] for topic in topics)
    return [("range", subscription(*names, **fields))]


@scenario_on("groups")
def classic_member_joins_consumer_group(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0])
    a = _classic(run, group.group, "a", topic)
    a.join("a classic member asks for an id")
    a.join("and joins")
    group.show("both protocols")
    show(run, group.group, note="as DescribeGroups sees it")
    a.sync("what it is assigned")
    group.beat("m1", "m1 is told to revoke")
    a.beat("a heartbeat before m1 revoked")
    group.beat("m1", "m1 has revoked", owns=[(topic, [0])])
    a.beat("a heartbeat after m1 revoked")
    a.join("it joins again")
    a.sync("and has its part")
    group.show("both protocols, settled")
    a.beat("a heartbeat")
    a.beat("an older generation", generation=a.generation - 1)
    a.beat("a newer generation", generation=a.generation + 1)
    a.sync("sync again")
    a.sync("sync of an older generation", generation=a.generation - 1)
    a.sync("sync with another protocol", protocol="roundrobin")
    a.sync("sync with another type", kind="connect")
    for version in (2, 8, 9):
        for generation in (a.generation, a.generation - 1, a.generation + 1, -1):
            request = commit(
                group.group, topic, (1, 3), version=version, member=a.id, generation=generation
            )
            delta = "no" if generation < 0 else f"{generation - a.generation:+}"
            run.send(request, version, f"a commit, generation {delta}")
    run.send(
        fetch_offsets(group.group, (topic, [1]), member=a.id, epoch=a.generation), V, "its fetch"
    )
    run.send(list_groups(types=["consumer"]), 5, "listed")
    a.leave("it leaves")
    a.beat("after that")
    group.beat("m1", "m1 has both again")
    group.show("one protocol")


@scenario_on("groups")
def consumer_member_joins_classic_group(run: Run) -> None:
    """The group is converted, and converted back when the last consumer member leaves."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    name = run.group()
    a = _classic(run, name, "a", topic)
    a.join("a classic member asks for an id")
    a.join("and joins")
    a.sync("it assigns itself both", {a.id: assignment(owned(topic[0], 0, 1))})
    run.send(commit(name, topic, (0, 5), member=a.id, generation=a.generation), V, "a commit")
    group = Consumers(run, name)
    group.join("m1", topic[0], note="a member of the other protocol joins")
    group.show("converted")
    show(run, name, note="as DescribeGroups sees it")
    run.send(list_groups(), 5, "listed")
    a.beat("the classic member's heartbeat")
    rejoin = subscription(topic[0], version=1, owned_partitions=[owned(topic[0], 0, 1)])
    a.join("it joins again with what it owns", protocols=[("range", rejoin)])
    a.sync("it syncs")
    less = subscription(topic[0], version=1, owned_partitions=[owned(topic[0], 0)])
    a.beat("it has revoked one")
    a.join("it joins with less", protocols=[("range", less)])
    a.sync("it syncs again")
    group.beat("m1", "m1 gets the other")
    group.show("settled")
    run.send(fetch_offsets(name, everything=True), V, "the offsets are still there")
    group.beat("m1", "m1 leaves: the last of its protocol", epoch=-1)
    show(run, name, note="classic again")
    group.show("no consumer group any more")
    a.beat("the classic member is told")
    a.join("it joins")
    a.sync("it syncs", {a.id: b"mine"})
    show(run, name, note="classic and stable")


@scenario_on("groups")
def consumer_member_joins_classic_group_midway(run: Run) -> None:
    """A group in a rebalance is converted as well; waiting members have to join again."""
    warm_up(run)
    topic = (run.topic("unknown"), b"")
    name = run.group("preparing")
    a = _classic(run, name, "a", topic)
    a.enter()
    b = _classic(run, name, "b", topic)
    b.get_id()
    b.begin_join("waits for the leader")
    group = Consumers(run, name)
    group.join("m1", topic[0], note="preparing: a member of the other protocol")
    run.send(list_groups(), 5, "preparing, then")
    b.finish_join()
    a.beat("the leader's heartbeat")
    group.show("after preparing")
    name = run.group("completing")
    c = _classic(run, name, "c", topic)
    c.join("asks for an id")
    c.join("and is alone")
    group = Consumers(run, name)
    group.join("m1", topic[0], note="completing: a member of the other protocol")
    c.sync("the leader's sync")
    c.beat("its heartbeat")
    group.show("after completing")


@scenario_on("groups")
def groups_that_cannot_be_converted(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    kinds: dict[str, dict[str, Any]] = {
        "an unreadable assignment": {"assigned": b"?", "protocols": _protocols(topic)},
        "another protocol type": {"kind": "connect", "protocols": [("range", b"?")]},
        "an unreadable subscription": {"protocols": [("range", b"?")]},
        "user data": {
            "protocols": [("range", subscription(topic[0], user_data=b"mine"))],
        },
        "a protocol of its own": {"protocols": [("own", subscription(topic[0]))]},
    }
    for note, fields in kinds.items():
        group = run.group(note)
        has = assignment(owned(topic[0], 0, 1))
        form(run, group, "a", **{"assigned": has, **fields})
        run.send(first_beat(group, "m1", topic[0]), 1, f"{note}: a consumer joins")
        run.send(beat(group, "m1", 1), 1, f"{note}: a consumer goes on")
        run.send(beat(group, "m1", -1), 1, f"{note}: a consumer leaves")
    run.send(list_groups(), 5, "what they are")


@scenario_on("groups")
def empty_groups_change_their_type(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    simple = run.group("simple")
    run.setup(commit(simple, topic, (0, 5)), V)
    run.send(first_beat(simple, "m1", topic[0]), 1, "a consumer joins a simple group")
    run.send(fetch_offsets(simple, everything=True), V, "with its offsets")
    run.send(describe_consumers(simple), 1, "a consumer group")
    empty = run.group("empty")
    (a,) = form(run, empty, "a")
    run.setup(commit(empty, topic, (0, 6), member=a.id, generation=1), V)
    a.leave(keep=False)
    run.send(first_beat(empty, "m1", topic[0]), 1, "a consumer joins an empty classic group")
    run.send(fetch_offsets(empty, everything=True), V, "with its offsets")
    run.send(beat(empty, "m1", -1), 1, "it leaves")
    run.send(list_groups(), 5, "what they are")
    told = run.send(join(empty, protocols=[("x", b"?")], kind="connect"), 9,
                    "a classic member of another kind comes")  # fmt: skip
    run.send(list_groups(), 5, "what they are")
    run.send(join(empty, told.member_id, protocols=[("x", b"?")], kind="connect"), 9, "and joins")
    run.send(list_groups(), 5, "what they are")
    run.send(fetch_offsets(empty, everything=True), V, "the offsets")
    pending = run.group("pending")
    waiting = run.setup(join(pending), 9)
    run.send(first_beat(pending, "m1", topic[0]), 1, "a consumer joins where one is pending")
    run.send(describe_consumers(pending), 1, "a consumer group")
    late = join(pending, waiting.member_id, protocols=_protocols(topic))
    run.send(late, 9, "the pending one joins")


@scenario_on("groups")
def static_member_changes_protocol(run: Run) -> None:
    """An instance comes back with the other protocol (KIP-848 upgrade by rolling restarts)."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    name = run.group("up")
    has = [assignment(owned(topic[0], partition)) for partition in (0, 1)]
    a = _classic(run, name, "a", topic, instance="i-a", assigned=has[0])
    b = _classic(run, name, "b", topic, instance="i-b", assigned=has[1])
    gather([a, b])
    group = Consumers(run, name)
    group.join("m1", topic[0], instance="i-b", note="an instance comes back as a consumer")
    group.show("half")
    b.beat("its old self")
    a.beat("the other")
    group.join("m2", topic[0], instance="i-a", note="the other comes back as a consumer")
    group.show("whole")
    name = run.group("down")
    group = Consumers(run, name)
    group.join("m1", topic[0], instance="i-a")
    group.join("m2", topic[0], instance="i-b")
    c = _classic(run, name, "c", topic, instance="i-b")
    c.join("an instance comes back as classic")
    group.show("half")
    d = _classic(run, name, "d", topic, instance="i-a")
    d.begin_join("the last consumer comes back as classic")
    run.send(list_groups(), 5, "listed")
    show(run, name, note="classic")


def _policy(run: Run) -> None:
    """Test both ways of conversion, and groups that need none."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    up = run.group("up")
    a = _classic(run, up, "a", topic)
    a.enter()
    run.send(first_beat(up, "m1", topic[0]), 1, "a consumer joins a classic group")
    a.beat("the classic member")
    run.send(list_groups(), 5, "listed")
    down = Consumers(run, run.group("down"))
    down.join("m1", topic[0])
    b = _classic(run, down.group, "b", topic)
    b.join("a classic member joins a consumer group")
    b.join("again, with the id it was given")
    run.send(list_groups(), 5, "listed")
    down.beat("m1", "the last consumer leaves", epoch=-1)
    run.send(list_groups(), 5, "listed")
    b.beat("the classic member")
    b.join("the classic member joins")
    show(run, down.group)
    simple = run.group("simple")
    run.setup(commit(simple, topic, (0, 5)), V)
    run.send(first_beat(simple, "m1", topic[0]), 1, "a consumer joins a simple group")
    run.send(beat(simple, "m1", -1), 1, "and leaves")
    told = run.send(join(simple), 9, "a classic member comes to the empty consumer group")
    run.send(join(simple, told.member_id), 9, "and joins")
    run.send(list_groups(), 5, "listed")


@scenario_on("groups")
def migration_both_ways(run: Run) -> None:
    _policy(run)


@scenario_on("no migration")
def migration_disabled(run: Run) -> None:
    _policy(run)


@scenario_on("upgrade only")
def migration_upgrade_only(run: Run) -> None:
    _policy(run)


@scenario_on("downgrade only")
def migration_downgrade_only(run: Run) -> None:
    _policy(run)


@scenario_on("small groups")
def full_group_of_both_protocols(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0])
    a = _classic(run, group.group, "a", topic)
    a.join("a classic member asks for an id")
    a.join("and joins")
    b = _classic(run, group.group, "b", topic)
    b.join("a third, classic")
    _classic(run, group.group, "c", topic, version=3).join("a third, classic, version 3")
    group.join("m2", topic[0], note="a third, consumer")
    group.show()


@scenario_on("range first")
def groups_too_large_to_be_converted(run: Run) -> None:
    """At most three members in a classic group here, and two in a consumer group."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    has = [assignment(owned(topic[0], partition)) for partition in (0, 1)]
    name = run.group("classic")
    gather([_classic(run, name, member, topic, assigned=assignment()) for member in "abc"])
    run.send(first_beat(name, "m1", topic[0]), 1, "a consumer joins three classic members")
    name = run.group("two")
    a = _classic(run, name, "a", topic, instance="i-a", assigned=has[0])
    b = _classic(run, name, "b", topic, instance="i-b", assigned=has[1])
    gather([a, b])
    run.send(first_beat(name, "m1", topic[0]), 1, "a consumer joins two classic members")
    run.send(
        first_beat(name, "m2", topic[0], instance="i-a"), 1, "one of two comes back as a consumer"
    )
    run.send(list_groups(), 5, "listed")
    group = Consumers(run, run.group("consumers"))
    group.join("m1", topic[0])
    group.join("m2", topic[0], instance="i")
    c = _classic(run, group.group, "c", topic, instance="i")
    c.join("one of two comes back as classic")
    run.send(list_groups(), 5, "listed")


@scenario_on("impatient")
def classic_members_of_consumer_groups_end(run: Run) -> None:
    """Their sessions have the requested length; members that rejoin too late are removed."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group("session"))
    group.join("m1", topic[0])
    a = _classic(run, group.group, "a", topic, session_ms=1_000)
    a.join("a classic member asks for an id")
    a.join("and joins")
    a.sync("it syncs")
    for _ in range(3):
        run.let_pass(700)
        group.beat("m1", "m1 goes on")
    group.show("the classic member was silent")
    a.beat("too late")
    group = Consumers(run, run.group("sync"))
    group.join("m1", topic[0])
    b = _classic(run, group.group, "b", topic, session_ms=20_000, rebalance_ms=1_000)
    b.join("a classic member asks for an id")
    b.join("joins and never syncs")
    for _ in range(3):
        run.let_pass(700)
        group.beat("m1", "m1 goes on")
    group.show("it never synced")
