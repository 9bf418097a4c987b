"""StreamsGroupHeartbeat: epochs, changed members, static members, sessions, records."""

from __future__ import annotations

from tests.golden.group_requests import delete_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.streams_group_requests import (
    Streamers,
    internal,
    part,
    records_of,
    setting,
    topology,
)


@scenario_on("streams groups")
def streams_member_epochs(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    for version in (0, 1):
        group.join("m", f"joins, version {version}", version=version)
        group.beat("m", f"again, version {version}", version=version)
        group.show(f"version {version}")
        group.show(f"described by version {version}", version=version)
    for epoch in (3, 2, 1, 4, 2**31 - 1):
        group.beat("m", f"epoch {epoch}", epoch=epoch)
    own, too_many = ({"0": [0, 1]}, {}, {}), ({"0": [0, 1]}, {"0": [0]}, {})
    group.beat("m", "changes", rebalance_timeout_ms=40_000)
    group.beat("m", "the previous epoch without tasks", epoch=2)
    group.beat("m", "the previous epoch with its tasks", epoch=2, owns=own)
    group.beat("m", "the previous epoch without any task", epoch=2, owns=({}, {}, {}))
    group.beat("m", "the previous epoch with tasks of others", epoch=2, owns=too_many)
    group.beat("m", "the previous epoch but one", epoch=1, owns=own)
    group.join("m", "joins again")
    group.join("m", "joins again with another time-out", rebalance_timeout_ms=50_000)
    for member, epoch in (("n", 1), ("n", -1), ("n", 2**31 - 1)):
        group.beat(member, f"an unknown member, epoch {epoch}", epoch=epoch)
    group.leave("m")
    group.leave("m", "leaves twice")
    group.beat("m", "after its leave")
    group.show("empty")
    group.join("m", "comes back")
    group.beat("m")
    group.show("it is back")


@scenario_on("streams groups")
def streams_member_changes(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("m", rack_id="r", tags={"a": "1", "b": "2"}, endpoint=("h", 1))
    group.show("all fields")
    group.beat("m", "nothing changes")
    group.beat("m", "the same rack", rack_id="r")
    group.beat("m", "another rack", rack_id="s")
    group.beat("m", "another time-out", rebalance_timeout_ms=1)
    group.beat("m", "another process", process_id="q")
    group.beat("m", "the same tags", tags={"b": "2", "a": "1"})
    group.beat("m", "other tags", tags={"c": "3"})
    group.beat("m", "no tags", tags={})
    group.beat("m", "an empty process", process_id="")
    group.beat("m", "another endpoint", endpoint=("i", 2))
    group.show("changed")
    group.join("m", "joins again with less", tags=None, process_id=None)
    group.show("joined again")
    group.leave("m")


@scenario_on("streams groups")
def streams_task_offsets(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("m", offsets=[("0", 0, 5)], end_offsets=[("0", 0, 9)])
    group.show("offsets of a first heartbeat")
    group.beat("m", "offsets", offsets=[("0", 1, 7), ("0", 0, 5)])
    group.show("offsets")
    group.beat("m", "end offsets", end_offsets=[("0", 1, 8)])
    group.show("end offsets, too")
    group.beat("m", "other offsets", offsets=[("1", 7, 2**62)], end_offsets=[])
    group.show("other offsets")
    group.beat("m", "an offset twice", offsets=[("0", 1, 7), ("0", 1, 7)])
    group.beat("m", "an end offset twice", end_offsets=[("0", 1, 7), ("0", 1, 8)])
    group.show("as before")
    group.leave("m")
    group.join("m", "comes back")
    group.beat("m")
    group.show("without offsets")


@scenario_on("streams groups")
def streams_static_members(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a", instance_id="i")
    group.show("a static member")
    group.join("a", "joins again", instance_id="i")
    group.join("b", "the instance is held", instance_id="i")
    group.join("a", "joins without instance")
    group.beat("a", "without instance")
    group.beat("a", "with its instance", instance_id="i")
    group.beat("a", "with another instance", instance_id="j")
    group.beat("b", "another member with the instance", instance_id="i", epoch=2)
    group.leave("b", "another member leaves for a while", epoch=-2, instance_id="i")
    group.leave("b", "another member leaves", instance_id="i")
    group.leave("a", "leaves for a while without instance", epoch=-2)
    group.leave("a", "leaves for a while", epoch=-2, instance_id="i")
    group.show("away")
    group.beat("a", "lives while it is away", instance_id="i")
    group.leave("a", "leaves for a while again", epoch=-2, instance_id="i")
    group.join("b", "a successor with the same process", instance_id="i", process_id="a")
    group.show("the successor")
    group.beat("b", instance_id="i")
    group.beat("a", "the predecessor", instance_id="i", epoch=2)
    group.leave("b", "leaves for a while", epoch=-2, instance_id="i")
    group.join("c", "a successor with another process", instance_id="i")
    group.show("another successor")
    group.leave("c", "leaves for a while", epoch=-2, instance_id="i")
    group.join("c", "comes back itself", instance_id="i")
    group.leave("c", "leaves", instance_id="i")
    group.show("empty")
    group.join("d", "a new member", instance_id="i")
    group.join("e", "another instance", instance_id="k")
    group.settle("d", "e")
    group.leave("e", "leaves for a while", epoch=-2, instance_id="k")
    group.beat("d", "keeps its tasks", instance_id="i")
    group.show("two instances")
    records_of(run, group.group, "all records")


@scenario_on("impatient streams groups")
def streams_sessions_end(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.enter("a", process_id="p")
    group.enter("b", process_id="q")
    group.settle("a", "b", rounds=2)
    group.show("two members")
    for _ in range(5):
        run.let_pass(1000)
        group.own("b", "lives")
    group.beat("a", "after its session")
    group.show("one session ended")
    run.let_pass(4500)
    group.show("both ended")
    group.beat("b", "after its session")
    group.join("b", "comes back")
    group.join("s", "a static member", instance_id="i")
    group.leave("s", "leaves for a while", epoch=-2, instance_id="i")
    for _ in range(5):
        run.let_pass(1000)
        group.own("b", "lives")
    group.show("the static member's session ended")


@scenario_on("impatient streams groups")
def streams_rebalance_timeout(run: Run) -> None:
    """A member that does not give up its tasks is removed."""
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.enter("a", process_id="p", rebalance_timeout_ms=1500)
    group.settle("a", rounds=1)
    group.join("b", process_id="q")
    group.beat("a", "has to give up a task", owns=({"0": [0, 1]}, {}, {}))
    run.let_pass(800)
    group.beat("a", "still has it", owns=({"0": [0, 1]}, {}, {}))
    group.own("b", "waits")
    run.let_pass(1500)
    group.beat("a", "too late", owns=({"0": [0]}, {}, {}))
    group.own("b", "has all tasks")
    group.show("one member")


@scenario_on("streams groups")
def streams_records(run: Run) -> None:
    """The records of a group, in their order."""
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    repartition, changelog = run.topic("r"), run.topic("s")
    given = topology(
        part(
            "1",
            repartition=[internal(repartition)],
            changelogs=[internal(changelog, cleanup_policy="compact")],
        ),
        part("0", topic, sinks=[repartition], together=[([0], [])]),
        epoch=3,
    )
    group = Streamers(run, run.group(), given)
    group.join("m", rack_id="r", tags={"x": "y", "a": "b"}, endpoint=("h", 65535))
    group.until_ready("m", keep=False)
    group.settle("m", rounds=1)
    records_of(run, group.group, "a first member")
    group.enter("n")
    group.settle("m", "n", rounds=3)
    records_of(run, group.group, "a second member")
    run.setup(setting(group.group, "streams.num.standby.replicas", "1"), 1)
    run.let_pass(300)
    group.settle("m", "n", rounds=4)
    records_of(run, group.group, "standby tasks")
    group.leave("m")
    group.leave("n")
    records_of(run, group.group, "left")
    run.send(delete_groups(group.group), 2, "deleted")
    records_of(run, group.group, "deleted")
