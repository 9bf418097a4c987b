"""SyncGroup, Heartbeat and LeaveGroup of a classic group, in each of its states."""

from __future__ import annotations

from tests.golden.group_requests import heartbeat, join, leave, sync
from tests.golden.members import Member, form, show, warm_up
from tests.golden.run import Run, scenario_on

SYNC_VERSIONS = (0, 2, 3, 4, 5)


@scenario_on("groups")
def sync_faults(run: Run) -> None:
    warm_up(run)
    group = run.group()
    for version in SYNC_VERSIONS:
        run.send(sync("", "m", 1), version, "no group id")
        run.send(sync(group, "m", 1), version, "unknown group")
    a, b = form(run, group, "a", "b")
    for version in SYNC_VERSIONS:
        run.send(sync(group, "nobody", 2), version, "unknown member")
        run.send(sync(group, "", 2), version, "no member id")
        for generation in (1, 3, 0, -1):
            run.send(sync(group, b.id, generation), version, f"generation {generation}")
        run.send(sync(group, b.id, 2, protocol=None), version, "no protocol name")
        run.send(sync(group, b.id, 2, kind=None), version, "no protocol type")
        run.send(sync(group, b.id, 2, kind=None, protocol=None), version, "neither")
        run.send(sync(group, b.id, 2, protocol="other"), version, "another protocol")
        run.send(sync(group, b.id, 2, kind="connect"), version, "another type")
        run.send(sync(group, b.id, 2), version, "stable: what was assigned")
        run.send(sync(group, a.id, 2, {b.id: b"?"}), version, "stable: a leader who changes it")
    for version in (3, 5):
        run.send(sync(group, b.id, 2, instance="i"), version, "an unknown instance id")
    show(run, group)


@scenario_on("groups")
def sync_in_each_state(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = form(run, group, "a", "b")
    a.begin_join("the leader joins")
    b.sync("preparing")
    b.sync("preparing: wrong generation", generation=7)
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    b.sync("completing: wrong generation", generation=2)
    b.sync("completing: another protocol", protocol="other")
    b.sync("completing: another type", kind="connect")
    b.begin_sync("completing: a follower waits")
    run.begin(b.syncing(), 5, "completing: it asks again on another connection", on="again")
    partly = {a.id: b"A", "nobody": b"?"}
    a.sync("the leader forgets one member and adds an unknown one", partly)
    run.finish(on="again")
    run.waits("the first of both syncs", on=b.name)
    show(run, group)
    run.send(b.syncing(), 5, "stable: empty when it was forgotten", on="again")
    run.send(a.syncing(), 5, "stable: the leader's", on="again")
    a.leave(keep=False)
    b.leave(keep=False)
    a.sync("empty")


@scenario_on("groups")
def follower_assigns(run: Run) -> None:
    """Only the leader's assignments count."""
    warm_up(run)
    group = run.group()
    a, b = form(run, group, "a", "b")
    a.begin_join("the leader joins")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    run.begin(
        b.syncing({b.id: b"mine", a.id: b"yours"}), 5, "a follower with assignments", on=b.name
    )
    a.sync("the leader has none", {})
    b.finish()
    show(run, group)


@scenario_on("groups")
def heartbeat_in_each_state(run: Run) -> None:
    warm_up(run)
    group = run.group()
    for version in (0, 3, 4):
        run.send(heartbeat("", "m", 1), version, "no group id")
        run.send(heartbeat(group, "m", 1), version, "unknown group")
        run.send(heartbeat(group, "", -1), version, "unknown group, no member")
    a, b = form(run, group, "a", "b")
    for version in (0, 3, 4):
        run.send(heartbeat(group, b.id, 2), version, "stable")
        for generation in (1, 3, 0, -1):
            run.send(heartbeat(group, b.id, generation), version, f"generation {generation}")
        run.send(heartbeat(group, "nobody", 2), version, "unknown member")
        run.send(heartbeat(group, "", 2), version, "no member id")
    for version in (3, 4):
        run.send(heartbeat(group, b.id, 2, instance="i"), version, "an unknown instance id")
    a.begin_join("the leader joins")
    b.beat("preparing: one that is not back")
    a.beat("preparing: one that waits")
    b.beat("preparing: wrong generation", generation=1)
    b.beat("preparing: unknown member", member="nobody")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    b.beat("completing")
    b.beat("completing: the old generation", generation=2)
    a.leave(keep=False)
    b.leave(keep=False)
    a.beat("empty")
    show(run, group)


@scenario_on("groups")
def leave_in_all_forms(run: Run) -> None:
    warm_up(run)
    group = run.group()
    for version in range(6):
        run.send(leave("", "m", version=version), version, "no group id")
        run.send(leave(group, "m", version=version), version, "unknown group")
    for version in (3, 4, 5):
        run.send(leave(group, version=version), version, "nobody leaves an unknown group")
        several = leave(group, "m", "n", ("", "i"), ("m", "i"), version=version)
        run.send(several, version, "several leave an unknown group")
    a, b, c = form(run, group, "a", "b", "c")
    run.send(leave(group, "", version=2), 2, "no member id")
    run.send(leave(group, "nobody", version=2), 2, "unknown member")
    for version in (3, 5):
        run.send(leave(group, version=version), version, "nobody leaves")
        run.send(leave(group, "", version=version), version, "no id at all")
        run.send(leave(group, (a.id, "i"), version=version), version, "an unknown instance id")
        run.send(leave(group, ("", "i"), version=version), version, "only an unknown instance id")
    show(run, group, note="nobody has left")
    run.send(leave(group, c.id, "nobody", c.id, reason="why not"), 5, "one, unknown, one again")
    show(run, group, note="two are left")
    run.send(leave(group, a.id, b.id), 5, "both")
    show(run, group, note="empty")
    run.send(leave(group, a.id), 5, "one of an empty group")


@scenario_on("groups")
def leave_in_each_state(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b, c = form(run, group, "a", "b", "c")
    b.leave("stable: a follower leaves")
    a.beat("preparing")
    a.begin_join("the leader joins")
    c.leave("preparing: the last that was waited for")
    a.finish_join()
    show(run, group, note="completing, one member")
    other = Member(run, group, "d")
    other.get_id()
    other.begin_join("one more, while it is completing")
    a.sync("completing was left: the leader's sync", {a.id: b"A"})
    a.begin_join("the leader comes")
    a.finish_join()
    other.finish_join()
    other.begin_sync("a follower's sync waits")
    a.leave("completing: the leader leaves")
    other.finish()
    other.join("the follower comes")
    show(run, group, note="and leads")
    waiting = Member(run, group, "e")
    waiting.get_id()
    waiting.begin_join("one waits for the leader")
    waiting.leave("it leaves while it waits")
    waiting.finish_join()
    other.join("the leader comes")
    show(run, group, note="one member")
    other.leave("the last one")
    other.beat("empty")


@scenario_on("groups")
def deleted_while_in_use(run: Run) -> None:
    """A deleted group has forgotten its members and its generation."""
    from tests.golden.group_requests import delete_groups

    warm_up(run)
    group = run.group()
    (a,) = form(run, group, "a")
    run.send(delete_groups(group), 3, "with a member")
    a.leave(keep=False)
    run.send(delete_groups(group), 3, "without members")
    a.beat("after it")
    a.sync("after it")
    a.leave("after it")
    a.join("after it")
    told = run.send(join(group), 9, "a new member")
    run.send(delete_groups(group), 3, "with a pending member")
    run.send(join(group, told.member_id), 9, "the pending one joins")
    show(run, group)
