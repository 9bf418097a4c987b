"""Static members of classic groups (KIP-345): the same instance again, in each state."""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import commit, heartbeat, join, leave, sync
from tests.golden.members import Member, form, gather, show, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on

V = 9


def _statics(run: Run, group: str, *names: str, **fields: Any) -> list[Member]:
    """Make a stable group of static members; the instance ids are `i-` and the name."""
    members = [Member(run, group, name, instance=f"i-{name}", **fields) for name in names]
    return gather(members)


@scenario_on("groups")
def static_faults(run: Run) -> None:
    warm_up(run)
    group, topic = run.group(), make_topic(run)
    a, b = _statics(run, group, "a", "b")
    show(run, group)
    for version in (5, 7, 9):
        run.send(join(group, "nobody", instance="i-b"), version, "its instance, another member id")
        run.send(join(group, a.id, instance="i-b"), version, "its instance, the other's member id")
        run.send(join(group, "nobody", instance="new"), version, "a new instance with a member id")
        run.send(join(group, instance="i-b", kind="connect"), version, "another protocol type")
    for version in (3, 4, 5):
        run.send(sync(group, "nobody", 2, instance="i-b"), version, "another member id")
        run.send(sync(group, a.id, 2, instance="i-b"), version, "the other's member id")
        run.send(sync(group, b.id, 2, instance="new"), version, "an unknown instance")
        run.send(sync(group, b.id, 2, instance="i-b"), version, "its own")
        run.send(sync(group, b.id, 2), version, "without its instance id")
    for version in (3, 4):
        run.send(heartbeat(group, "nobody", 2, instance="i-b"), version, "another member id")
        run.send(heartbeat(group, a.id, 2, instance="i-b"), version, "the other's member id")
        run.send(heartbeat(group, b.id, 2, instance="new"), version, "an unknown instance")
        run.send(heartbeat(group, b.id, 2), version, "without its instance id")
        run.send(heartbeat(group, "nobody", 7, instance="i-b"), version, "and a wrong generation")
        run.send(heartbeat(group, b.id, 2, instance="i-b"), version, "its own")
    for version in (7, 9):
        for member, instance in (("nobody", "i-b"), (a.id, "i-b"), (b.id, "new"), (b.id, "i-b")):
            who = {"nobody": "nobody", a.id: "the other", b.id: "itself"}[member]
            request = commit(
                group, topic, (0, 1), version=version, member=member, generation=2,
                instance=instance,
            )  # fmt: skip
            run.send(request, version, f"commit of {who} as {instance}")
    run.send(leave(group, ("nobody", "i-b"), (a.id, "i-b"), ("", "new")), 5, "wrong pairs leave")
    show(run, group, note="nobody has left")


@scenario_on("groups")
def static_members_come_back(run: Run) -> None:
    """Stable, with the same metadata: a new member id, and no rebalance."""
    warm_up(run)
    group = run.group()
    a, b = _statics(run, group, "a", "b")
    for version in (5, 8, 9):
        old = b.id
        told = run.send(b.joining(member=""), version, "a follower comes back", on=b.name)
        b.id = told.member_id
        run.send(heartbeat(group, old, 2, instance="i-b"), 4, "its old id with the instance")
        run.send(heartbeat(group, old, 2), 4, "its old id alone")
        run.send(b.joining(member=old), version, "its old id joins", on=b.name)
        run.send(leave(group, (old, "i-b")), 5, "its old id leaves")
        b.sync("syncs")
        a.beat("the leader's heartbeat")
    for version in (5, 8, 9):
        told = run.send(a.joining(member=""), version, "the leader comes back", on=a.name)
        a.id = told.member_id
        show(run, group, note="stable")
        a.sync("syncs")
        b.beat("the follower's heartbeat")
    a.begin_join("the leader joins with its new id")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()


@scenario_on("groups")
def static_members_come_back_changed(run: Run) -> None:
    """Metadata that does not change the protocol is stored; a changed protocol rebalances."""
    warm_up(run)
    group = run.group("metadata")
    a, b = _statics(run, group, "a", "b")
    told = run.send(
        b.joining(member="", protocols=[("range", b"new")]), V, "changed metadata", on=b.name
    )
    b.id = told.member_id if told else b.id
    show(run, group, note="after changed metadata")
    a.beat("the leader's heartbeat")
    group = run.group("protocol")
    a, b = _statics(run, group, "a", "b", protocols=[("x", b"x"), ("y", b"y")])
    show(run, group, note="both prefer x")
    b.begin_join("comes back with y only", member="", protocols=[("y", b"y")])
    a.beat("the leader's heartbeat")
    a.begin_join("the leader comes")
    b.finish_join()
    a.finish_join()
    show(run, group)


@scenario_on("groups")
def static_members_in_a_rebalance(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b = _statics(run, group, "a", "b")
    a.begin_join("the leader joins")
    run.begin(a.joining(member=""), V, "preparing: it comes back while it waits", on="again")
    a.finish_join()
    b.begin_join("the follower comes")
    a.id = run.finish(on="again").member_id
    b.finish_join()
    b.begin_sync("the follower's sync waits")
    run.begin(b.joining(member=""), V, "completing: the follower comes back", on="again")
    b.finish()
    a.begin_join("the leader comes")
    a.finish_join()
    b.id = run.finish(on="again").member_id
    show(run, group)
    a.sync("the leader's sync before the follower's", {a.id: b"A", b.id: b"B"}, generation=4)
    b.sync("the follower's sync", generation=4)


@scenario_on("groups")
def static_members_leave(run: Run) -> None:
    warm_up(run)
    group = run.group()
    a, b, c, d = _statics(run, group, "a", "b", "c", "d")
    run.send(leave(group, (b.id, "i-b")), 5, "by member id and instance id")
    run.send(leave(group, ("", "i-c")), 5, "by instance id")
    run.send(leave(group, ("", "i-c")), 5, "by instance id, again")
    run.send(leave(group, (d.id, None)), 5, "by member id")
    show(run, group)
    a.join("the leader alone")
    back = Member(run, group, "c", instance="i-c")
    back.begin_join("one that had left is new")
    a.begin_join("the leader comes")
    a.finish_join()
    back.finish_join()
    run.send(leave(group, ("", "i-a"), ("nobody", "i-c"), ("", "i-c")), 5, "the rest, one wrong")
    show(run, group)


@scenario_on("groups")
def static_beside_dynamic(run: Run) -> None:
    warm_up(run)
    group = run.group()
    (a,) = form(run, group, "a")
    b = Member(run, group, "b", instance="i-b")
    b.begin_join("a static member joins without a pending step")
    show(run, group, note="preparing")
    a.begin_join("the leader comes")
    a.finish_join()
    b.finish_join()
    b.begin_sync("its sync waits")
    a.sync("the leader's", {a.id: b"A", b.id: b"B"})
    b.finish()
    a.leave("the dynamic leader leaves")
    b.join("the static one leads")


@scenario_on("small groups")
def full_group_of_static_members(run: Run) -> None:
    """A known instance finds its place; a third does not."""
    warm_up(run)
    group = run.group()
    a, b = _statics(run, group, "a", "b")
    b.join("comes back, stable", member="")
    run.send(join(group, instance="i-c"), V, "a third, stable")
    a.begin_join("the leader joins")
    run.begin(b.joining(), V, "comes back, preparing", on=b.name)
    a.finish_join()
    b.finish_join()
    run.send(join(group, instance="i-c"), V, "a third, completing")
    show(run, group)
