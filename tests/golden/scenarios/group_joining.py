"""JoinGroup: faults, pending members, the choice of protocol and leader, full groups."""

from __future__ import annotations

from tests.golden.group_requests import SESSION_MS, describe, heartbeat, join, leave, sync
from tests.golden.members import DESCRIBE, Member, form, show, warm_up
from tests.golden.run import Run, scenario_on

V = 9


@scenario_on("groups")
def join_faults(run: Run) -> None:
    warm_up(run)
    for version in (0, 1, 3, 4, 5, 6, 7, 9):
        group = run.group(f"v{version}")
        run.send(join(""), version, "no group id")
        for session in (-1, 0, 5_999, 1_800_001):
            run.send(join(group, session_ms=session), version, f"session of {session} ms")
        run.send(join(group, "nobody"), version, "a member id in an unknown group")
        run.send(join(group, kind=""), version, "no protocol type")
        run.send(join(group, protocols=[]), version, "no protocols")
        if version >= 5:
            run.send(join(group, "nobody", instance="i"), version, "both ids, unknown group")
    run.send(describe(run.group("v9")), DESCRIBE, "nothing was made")


@scenario_on("groups")
def join_faults_in_a_group(run: Run) -> None:
    warm_up(run)
    group = run.group()
    (leader,) = form(run, group, "a")
    for version in (0, 4, 7, 9):
        run.send(join(group, "nobody"), version, "unknown member id")
        run.send(join(group, kind="connect"), version, "another protocol type")
        run.send(join(group, kind=""), version, "no protocol type")
        run.send(join(group, protocols=[("roundrobin", b"")]), version, "no common protocol")
        run.send(join(group, protocols=[]), version, "no protocols")
        run.send(join(group, leader.id, kind="connect"), version, "a member changes the type")
        run.send(join(group, session_ms=1), version, "a short session")
    for version in (5, 9):
        run.send(join(group, "nobody", instance="i"), version, "both ids unknown")
        run.send(join(group, leader.id, instance="i"), version, "a member takes an instance id")
    show(run, group)


@scenario_on("groups")
def join_oddities(run: Run) -> None:
    """Unusual requests that Kafka accepts."""
    warm_up(run)
    for session in (6_000, 1_800_000):
        run.send(join(run.group(f"s{session}"), session_ms=session), 3, f"session of {session} ms")
    for rebalance in (0, -1, -5):
        request = join(run.group(f"r{rebalance}"), rebalance_ms=rebalance)
        run.send(request, 3, f"rebalance timeout {rebalance}")
    for number, name in enumerate((" ", "a b", "x" * 300, "grüppe", "a\tb")):
        run.send(join(run.group(name)), 3, f"group name {number}")
    empty = [("", b"")]
    run.send(join(run.group("unnamed"), protocols=empty), 3, "a protocol without a name")
    for number, instance in enumerate(("", "a b", "x" * 250, "ü")):
        request = join(run.group(f"i{number}"), instance=instance)
        run.send(request, 5, f"instance id {number}")
    for kind in ("connect", "sr", " "):
        told = run.send(join(run.group(f"k{kind}"), kind=kind), 3, f"protocol type {kind!r}")
        run.send(
            sync(run.group(f"k{kind}"), told.member_id, 1, {told.member_id: b"x"}, kind=kind), 5,
            f"sync with protocol type {kind!r}",
        )  # fmt: skip
        show(run, run.group(f"k{kind}"))


@scenario_on("groups")
def join_chooses_a_protocol(run: Run) -> None:
    """All members must support the name; most must prefer it."""
    warm_up(run)
    group = run.group("votes")
    members = [
        Member(run, group, "a", protocols=[("x", b"ax"), ("y", b"ay"), ("z", b"az")]),
        Member(run, group, "b", protocols=[("y", b"by"), ("x", b"bx")]),
        Member(run, group, "c", protocols=[("q", b"cq"), ("y", b"cy"), ("x", b"cx")]),
    ]
    a, b, c = members
    a.enter()
    show(run, group, note="a alone")
    for member in (b, c):
        member.get_id()
        member.begin_join("waits for a")
    a.begin_join("the leader comes")
    for member in members:
        member.finish_join()
    run.send(describe(group), DESCRIBE, "y has most votes")
    none = [("q", b""), ("z", b"")]
    run.send(join(group, protocols=none), V, "each has one, no one has all")
    one = [("x", b"")]
    run.send(join(group, protocols=one), V, "one that all have")


@scenario_on("groups")
def pending_members(run: Run) -> None:
    warm_up(run)
    group = run.group("alone")
    pending = run.send(join(group), V, "the first asks for an id").member_id
    show(run, group, note="a group with a pending member")
    run.send(heartbeat(group, pending, -1), 4, "heartbeat of a pending member")
    run.send(heartbeat(group, pending, 0), 4, "heartbeat of a pending member, generation 0")
    run.send(sync(group, pending, 0), 5, "sync of a pending member")
    run.send(join(group, pending, kind=""), V, "joins without a protocol type")
    run.send(leave(group, pending), 5, "a pending member leaves")
    run.send(leave(group, pending), 5, "and again")
    run.send(join(group, pending), V, "and joins")
    show(run, group, note="nobody is left")
    for version in (4, 9):
        group = run.group(f"beside{version}")
        (leader,) = form(run, group, "a")
        other = run.send(join(group), version, "a second asks for an id").member_id
        show(run, group, note="stays stable")
        run.send(heartbeat(group, other, leader.generation), 4, "heartbeat of the pending one")
        run.send(join(group, other, kind="connect"), version, "pending, with another type")
        leader.begin_join("the leader joins again: waits for the pending one")
        show(run, group, note="a pending one holds the rebalance")
        run.send(leave(group, other), 5, "the pending one leaves")
        leader.finish_join()
        show(run, group, note="the leader alone")


@scenario_on("groups")
def join_in_each_state(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = form(run, group, "a", "b")
    for version in (9, 4):
        again = join(group, b.id, protocols=[("range", b"b")])
        run.send(again, version, "stable: a follower says the same")
    changed = [("range", b"other")]
    b.begin_join("stable: a follower changes its metadata", protocols=changed)
    show(run, group, note="preparing")
    a.beat("preparing: heartbeat of the leader")
    a.begin_join("the leader comes")
    a.finish_join()
    b.finish_join()
    show(run, group, note="completing")
    a.join("completing: the leader says the same")
    b.join("completing: a follower says the same", protocols=changed)
    b.begin_sync("a follower's sync waits")
    again = join(group, a.id, protocols=[("range", b"new")])
    run.begin(again, V, "completing: the leader changes its metadata", on=a.name)
    b.finish()
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    b.begin_sync()
    a.sync("the leader's sync", {a.id: b"A", b.id: b"B"})
    b.finish()
    show(run, group, note="stable")
    a.begin_join("stable: the leader joins, which rebalances")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    for member in (a, b):
        member.leave(keep=False)
    show(run, group, note="empty")
    a.join("empty: with a member id")
    told = run.send(join(group), V, "empty: a new member")
    run.send(join(group, told.member_id), V, "with its id: the generation goes on")


@scenario_on("groups")
def join_twice_while_waiting(run: Run) -> None:
    """A member joins again on another connection, as after a lost connection."""
    warm_up(run)
    group = run.group()
    a, b = form(run, group, "a", "b")
    b.begin_join("changed", protocols=[("range", b"1")])
    run.begin(b.joining(protocols=[("range", b"2")]), V, "once more", on="again")
    run.waits("the first of both", on=b.name)
    a.begin_join("the leader comes")
    a.finish_join()
    run.finish(on="again")
    run.waits("the first of both, after the rebalance", on=b.name)


@scenario_on("groups")
def leaders_that_leave(run: Run) -> None:
    """One member is left each time: a hash map in Kafka chooses the next leader of several."""
    warm_up(run)
    group = run.group()
    a, b = form(run, group, "a", "b")
    a.leave("the leader leaves")
    show(run, group, note="preparing")
    b.join("the follower leads")
    c = Member(run, group, "c")
    c.get_id()
    c.begin_join("one more, while it is completing")
    b.leave("the leader leaves while it is waited for")
    c.finish_join()
    show(run, group, note="completing")
    c.leave("the last one leaves before its sync")
    show(run, group, note="empty")


@scenario_on("groups")
def members_of_old_versions(run: Run) -> None:
    """Versions below 4 have no pending step, version 0 no rebalance timeout; a new version is
    beside.
    """
    warm_up(run)
    group = run.group()
    old = Member(run, group, "old", version=0, session_ms=SESSION_MS)
    old.join("the first is old")
    old.sync("sync", {old.id: b"mine"})
    newer = Member(run, group, "newer", version=3)
    newer.begin_join("joins without a pending step")
    newest = Member(run, group, "newest")
    newest.join("asks for its id")
    newest.begin_join("joins with it")
    old.begin_join("the leader comes")
    for member in (old, newer, newest):
        member.finish_join()
    show(run, group)


@scenario_on("small groups")
def full_groups(run: Run) -> None:
    warm_up(run)
    group = run.group("stable")
    a, b = form(run, group, "a", "b", rebalance_ms=3_000)
    for version in (0, 3, 4, 6, 7, 9):
        run.send(join(group), version, "a third, stable")
    run.send(join(group, instance="i"), V, "a third with an instance id")
    run.send(join(group, "nobody"), V, "a third with an unknown id")
    b.join("a member joins again")
    a.begin_join("the leader joins")
    pending = run.send(join(group), V, "a third, preparing: room as long as one is not back")
    b.begin_join("the other comes, and waits for the pending one")
    run.send(join(group, pending.member_id), V, "the third joins")
    run.send(leave(group, pending.member_id), 5, "it is no member any more")
    # Kafka does not check whether the rebalance could end now: the rebalance timeout ends it.
    a.finish_join()
    b.finish_join()
    run.send(join(group), V, "a third, completing")
    b.leave("one leaves")
    told = run.send(join(group), V, "a third has room")
    run.send(join(group), V, "a fourth has room as long as the third is pending")
    run.begin(join(group, told.member_id), V, "the third joins", on="third")
    a.begin_join("the leader comes")
    show(run, group)


@scenario_on("small groups")
def full_group_of_pending_members(run: Run) -> None:
    warm_up(run)
    group = run.group()
    asked = join(group, rebalance_ms=3_000)
    ids = [run.send(asked, V, "one more asks for an id").member_id for _ in range(3)]
    for number, member in enumerate(ids):
        joins = join(group, member, rebalance_ms=3_000)
        run.begin(joins, V, f"number {number} joins", on=str(number))
    run.finish(on="0")
    run.send(join(group, ids[0], rebalance_ms=3_000), V, "the first finds two others waiting")
    show(run, group)
    # A hash map in Kafka chooses the leader.
    run.finish(on="1", keep=False)
    run.finish(on="2", keep=False)
    show(run, group)


@scenario_on("slow start")
def initial_delay(run: Run) -> None:
    """A new group waits for more members before its first generation."""
    warm_up(run)
    group = run.group()
    a, b = Member(run, group, "a"), Member(run, group, "b")
    for member in (a, b):
        member.get_id()
        member.begin_join("within the delay")
    show(run, group, note="while it waits")
    a.finish_join()
    b.finish_join()
    show(run, group)
    a.leave(keep=False)
    b.leave(keep=False)
    late = Member(run, group, "late", version=3)
    late.begin_join("the delay holds for a group that became empty")
    show(run, group, note="while it waits again")
    late.finish_join()


@scenario_on("slow start")
def initial_delay_is_left(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = Member(run, group, "a"), Member(run, group, "b")
    for member in (a, b):
        member.get_id()
        member.begin_join("within the delay")
    b.leave("one leaves again")
    run.send(leave(group, "nobody"), 5, "somebody unknown leaves")
    b.finish_join()
    a.finish_join()
