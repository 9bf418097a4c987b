"""Members of classic groups that are too late. Sessions are short here; real Kafka takes real time.

All time-outs are at least half a second apart, so that the order is the same on a slow machine.
"""

from __future__ import annotations

from tests.golden.group_requests import describe, heartbeat, join
from tests.golden.members import DESCRIBE, Member, form, gather, show, warm_up
from tests.golden.run import Run, scenario_on

V = 9


@scenario_on("impatient")
def short_sessions(run: Run) -> None:
    warm_up(run)
    for session in (99, 100):
        request = join(run.group(f"s{session}"), session_ms=session)
        run.send(request, V, f"session of {session} ms")


@scenario_on("impatient")
def session_ends(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = gather([Member(run, group, "a"), Member(run, group, "b", session_ms=2_000)])
    run.let_pass(1_200)
    b.beat("a heartbeat in time")
    run.let_pass(1_200)
    b.beat("and another")
    show(run, group, note="both are there")
    run.let_pass(2_800)
    show(run, group, note="one was silent")
    b.beat("too late")
    a.beat("the other is told")
    a.join("and comes")
    b.join("the silent one comes with its old id")


@scenario_on("impatient")
def last_session_ends(run: Run) -> None:
    warm_up(run)
    group = run.group()
    (a,) = form(run, group, "a", session_ms=700)
    run.let_pass(1_500)
    show(run, group, note="empty")
    a.beat("too late")
    a.join("too late")
    told = run.send(join(group, session_ms=700), V, "a new member")
    run.send(join(group, told.member_id, session_ms=700), V, "the generation has gone on twice")


@scenario_on("impatient")
def pending_id_ends(run: Run) -> None:
    warm_up(run)
    group = run.group()
    (a,) = form(run, group, "a")
    told = run.send(join(group, session_ms=1_500), V, "asks for an id and never joins")
    a.begin_join("the leader joins: waits for the pending one")
    a.finish_join()
    run.send(join(group, told.member_id, session_ms=1_500), V, "the pending one, too late")
    show(run, group)


@scenario_on("impatient")
def rebalance_ends_without_all(run: Run) -> None:
    """The longest rebalance timeout of the members counts."""
    warm_up(run)
    group = run.group()
    a = Member(run, group, "a", rebalance_ms=500)
    b = Member(run, group, "b", rebalance_ms=2_000)
    c = Member(run, group, "c", rebalance_ms=500)
    gather([a, b, c])
    c.begin_join("a follower joins with changed metadata", protocols=[("range", b"new")])
    run.let_pass(1_000)
    run.waits("the follower", on=c.name)
    c.finish_join()
    show(run, group, note="the follower alone")
    a.beat("one that did not come")
    b.join("the other that did not come")


@scenario_on("impatient")
def rebalance_ends_without_static_members(run: Run) -> None:
    """Missing static members stay in the group, and may even lead it."""
    warm_up(run)
    group = run.group()
    a = Member(run, group, "a", rebalance_ms=1_000, instance="i-a")
    b = Member(run, group, "b", rebalance_ms=1_000)
    gather([a, b])
    b.begin_join("the follower joins with changed metadata", protocols=[("range", b"new")])
    b.finish_join()
    show(run, group, note="both are members")
    a.beat("the old generation")
    a.begin_join("the static one comes later")
    run.let_pass(1_500)
    show(run, group, note="later")


@scenario_on("impatient")
def follower_does_not_sync(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = gather([Member(run, group, n, rebalance_ms=1_500) for n in ("a", "b")])
    a.begin_join("the leader joins")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    a.sync("the leader syncs", {a.id: b"A", b.id: b"B"})
    show(run, group, note="stable")
    run.let_pass(2_200)
    show(run, group, note="one never synced")
    b.beat("it is no member any more")
    a.beat("the leader is told")


@scenario_on("impatient")
def leader_does_not_sync(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = gather([Member(run, group, n, rebalance_ms=1_500) for n in ("a", "b")])
    a.begin_join("the leader joins")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    b.begin_sync("the follower's sync waits")
    b.finish()
    show(run, group, note="the leader is gone")
    a.beat("the leader")
    b.join("the follower leads")


@scenario_on("impatient")
def waiting_joins_outlive_sessions(run: Run) -> None:
    """While a JoinGroup or SyncGroup waits, its member's session does not end."""
    warm_up(run)
    group = run.group()
    a, b = gather(
        [
            Member(run, group, "a", session_ms=6_000, rebalance_ms=3_000),
            Member(run, group, "b", session_ms=700, rebalance_ms=3_000),
        ]
    )
    b.begin_join("joins and waits longer than its session", protocols=[("range", b"new")])
    run.let_pass(1_500)
    show(run, group, note="still a member")
    a.begin_join("the leader comes")
    a.finish_join()
    b.finish_join()
    b.begin_sync("syncs and waits longer than its session")
    run.let_pass(1_500)
    show(run, group, note="completing")
    a.sync("the leader's sync", {a.id: b"A"})
    b.finish()
    run.let_pass(1_500)
    run.send(describe(group), DESCRIBE, "now its session has ended")


@scenario_on("impatient")
def new_members_have_time_to_join(run: Run) -> None:
    """A new member's session does not count before its first rebalance has ended."""
    warm_up(run)
    group = run.group()
    (a,) = form(run, group, "a", rebalance_ms=5_000)
    b = Member(run, group, "b", version=3, session_ms=500)
    b.begin_join("waits longer than its session")
    run.let_pass(1_200)
    show(run, group, note="still there")
    a.begin_join("the leader comes")
    a.finish_join()
    b.finish_join()
    run.send(heartbeat(group, b.id, b.generation), 4, "a heartbeat at once")
    run.let_pass(1_200)
    show(run, group, note="silent too long")


@scenario_on("impatient")
def static_session_ends(run: Run) -> None:
    """A static member that is away too long loses its place."""
    warm_up(run)
    group = run.group()
    a = Member(run, group, "a", instance="i-a")
    b = Member(run, group, "b", instance="i-b", session_ms=800)
    gather([a, b])
    run.let_pass(1_600)
    show(run, group, note="one is gone")
    a.join("the other comes")
    again = Member(run, group, "b again", instance="i-b", session_ms=800)
    again.begin_join("it comes back as a new one")
    a.begin_join("the other comes again")
    a.finish_join()
    again.finish_join()
