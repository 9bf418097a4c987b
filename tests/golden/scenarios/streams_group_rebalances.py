"""StreamsGroupHeartbeat: assignments, revocations, standby tasks, delays, endpoints, shutdown."""

from __future__ import annotations

from tests.golden.group_requests import list_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.streams_group_requests import Streamers, internal, part, setting, topology


def _stateful(run: Run, partitions: int) -> Streamers:
    warm_up(run)
    topic = make_topic(run, partitions=partitions)[0]
    given = topology(part("0", topic, changelogs=[internal(run.topic("changelog"))]))
    return Streamers(run, run.group(), given)


@scenario_on("streams groups")
def streams_revocation(run: Run) -> None:
    """Tasks go to a second member when the first one has given them up."""
    warm_up(run)
    topic = make_topic(run, partitions=4)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a")
    group.own("a")
    group.join("b")
    group.show("b waits")
    group.own("b", "b still waits")
    group.beat("a", "a has to give up tasks")
    group.show("a has not given them up")
    group.beat("a", "a says nothing")
    group.beat("a", "a still has them", owns=({"0": [0, 1, 2, 3]}, {}, {}))
    group.beat("a", "a still has one", owns=({"0": [0, 1, 2]}, {}, {}))
    group.own("a", "a has given them up")
    group.show("they are free")
    group.own("b", "b gets them")
    group.show("stable")
    group.own("a")
    group.own("b")
    group.leave("a")
    group.own("b", "b gets all")
    group.show("one member")


@scenario_on("streams groups")
def streams_target_changes_while_tasks_move(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=4)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a")
    group.own("a")
    group.join("b")
    group.beat("a", "a has to give up tasks", owns=({"0": [0, 1, 2, 3]}, {}, {}))
    group.leave("b")
    group.beat("a", "nobody waits any longer", owns=({"0": [0, 1, 2, 3]}, {}, {}))
    group.own("a", "it has given up a task that it may have again")
    group.own("a")
    group.show("all tasks again")
    group.join("b", "b again")
    group.own("a", "a has to give up tasks again")
    group.own("a", "a has given them up")
    group.beat("b", "b's answer is lost", owns=({}, {}, {}))
    group.beat("b", "b repeats its epoch", epoch=1, owns=({}, {}, {}))
    group.show("stable")


@scenario_on("streams groups")
def streams_two_members_of_a_process(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=4)[0]
    group = Streamers(run, run.group(), topology(part("0", topic), part("1", topic)))
    group.join("a", process_id="p")
    group.own("a")
    group.join("b", process_id="p")
    group.settle("a", "b")
    group.show("two threads")
    group.join("c", process_id="q")
    group.settle("a", "b", "c")
    group.show("two processes")
    group.leave("b")
    group.settle("a", "c")
    group.show("a thread less")


@scenario_on("streams groups")
def streams_standby_tasks(run: Run) -> None:
    group = _stateful(run, 4)
    name = "streams.num.standby.replicas"
    run.send(setting(group.group, name, "1"), 1, "one standby")
    group.enter("a", process_id="p")
    group.settle("a", rounds=1)
    group.show("one process has no place for standby tasks")
    group.join("b", process_id="q")
    group.settle("a", "b")
    group.show("two processes")
    group.join("a2", "another thread of a process", process_id="p")
    group.settle("a", "b", "a2")
    group.show("three members")
    group.leave("b")
    group.settle("a", "a2")
    group.show("one process again")
    group.join("b", "the process again", process_id="q")
    group.settle("a", "a2", "b")
    group.show("two processes again")
    run.send(setting(group.group, name, "0"), 1, "no standby")
    run.let_pass(300)
    group.settle("a", "a2", "b")
    group.show("without standby tasks")
    run.send(setting(group.group, name, "2"), 1, "two standbys")
    run.send(setting(group.group, name, "3"), 1, "three standbys")
    run.let_pass(300)
    group.settle("a", "a2", "b")
    group.show("one of two standbys")


@scenario_on("streams groups")
def streams_standby_becomes_active(run: Run) -> None:
    group = _stateful(run, 2)
    run.setup(setting(group.group, "streams.num.standby.replicas", "1"), 1)
    group.enter("a", process_id="p")
    group.settle("a", rounds=1)
    group.join("b", process_id="q")
    group.settle("a", "b")
    group.show("two processes")
    group.own("a")
    group.own("b")
    group.leave("a")
    group.own("b", "the standby becomes active")
    group.own("b")
    group.show("one process")
    group.join("a", "the process comes back", process_id="p", offsets=[("0", 0, 5), ("0", 1, 7)])
    for step in range(3):
        group.own("a", f"a, round {step}")
        group.own("b", f"b, round {step}")
    group.show("both again")


@scenario_on("streams groups")
def streams_stateless_tasks_have_no_standby(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    stateful = part("1", topic, changelogs=[internal(run.topic("changelog"))])
    group = Streamers(run, run.group(), topology(part("0", topic), stateful))
    run.setup(setting(group.group, "streams.num.standby.replicas", "1"), 1)
    group.enter("a", process_id="p")
    group.settle("a", rounds=1)
    group.join("b", process_id="q")
    group.settle("a", "b")
    group.show("two processes")


@scenario_on("streams groups")
def streams_reported_offsets_attract_tasks(run: Run) -> None:
    """A member with a copy of the state gets the task, although it never had it."""
    group = _stateful(run, 4)
    group.enter("a", process_id="p")
    group.settle("a", rounds=1)
    group.join("b", process_id="q", offsets=[("0", 3, 5), ("0", 1, 7)])
    group.own("b", "offsets", offsets=[("0", 3, 5), ("0", 1, 7)])
    group.settle("a", "b")
    group.show("two processes")
    group.join("c", process_id="r")
    group.own("c", "offsets", offsets=[("0", 0, 5)])
    group.leave("a")
    group.settle("b", "c")
    group.show("the first process has gone")


@scenario_on("streams groups")
def streams_endpoints(run: Run) -> None:
    group = _stateful(run, 2)
    run.setup(setting(group.group, "streams.num.standby.replicas", "1"), 1)
    group.enter("a", process_id="p", endpoint=("h", 1))
    group.settle("a", rounds=1)
    group.beat("a", "endpoint epoch 0")
    group.beat("a", "endpoint epoch 1", endpoint_information_epoch=1)
    group.beat("a", "endpoint epoch 2", endpoint_information_epoch=2)
    group.beat("a", "endpoint epoch -1", endpoint_information_epoch=-1)
    group.beat("a", "another endpoint", endpoint=("h", 2))
    group.beat("a", "the same endpoint", endpoint=("h", 2))
    group.join("b", "a member without endpoint", process_id="q")
    group.settle("a", "b")
    group.beat("b", "endpoints for a member without one")
    group.join("b", "it gets an endpoint", process_id="q", endpoint=("i", 1))
    group.settle("a", "b")
    group.beat("a", "both endpoints")
    group.join("b", "it has none again", process_id="q")
    group.beat("a", "one endpoint")
    group.leave("a")
    group.own("b", "no endpoint")


@scenario_on("streams groups")
def streams_endpoints_at_join(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    for note, given in (
        ("a topology that is ready", topology(part("0", topic))),
        ("a source is missing", topology(part("0", run.topic("missing")))),
    ):
        group = Streamers(run, run.group(note), given)
        group.join("m", note, endpoint=("h", 1))
        group.beat("m", f"{note}, again")


@scenario_on("streams groups")
def streams_shutdown(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a")
    group.join("b")
    group.beat("b", "asks for a shutdown", shutdown_application=True)
    group.beat("a", "hears it")
    group.beat("a", "asks, too", shutdown_application=True)
    group.join("c", "a new member hears it")
    group.leave("b")
    group.beat("a", "still hears it")
    group.leave("a")
    group.leave("c")
    group.join("d", "a member of the empty group")
    group.beat("d")
    group.join("e")
    group.leave("d", "asks at its leave", shutdown_application=True)
    group.beat("e", "hears it")
    group.leave("e")
    other = Streamers(run, run.group("other"), group.topology)
    other.join("a", "asks at its join", shutdown_application=True)
    other.beat("a", "after its join")


@scenario_on("streams groups as shipped")
def streams_initial_delay(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a", process_id="p")
    group.own("a", "too early")
    run.let_pass(1000)
    group.join("b", "too early, too", process_id="q")
    group.show("not assigned")
    run.send(list_groups(types=["streams"]), 5, "listed")
    run.let_pass(2500)
    group.show("assigned")
    group.own("a")
    group.own("b")
    group.show("delivered")
    group.join("c", "too early for another assignment", process_id="r")
    group.own("a", "too early as well")
    run.let_pass(1200)
    group.own("c", "the next assignment")
    group.settle("a", "b", "c")
    group.show("three members")
    for member in ("a", "b", "c"):
        group.leave(member)
    group.join("a", "an empty group waits again")
    group.leave("a")
    run.let_pass(3500)
    group.show("empty")
    group.join("a", "and again")
    run.let_pass(3500)
    group.own("a", "a single heartbeat is not enough for the timer")
    run.send(setting(group.group, "streams.initial.rebalance.delay.ms", "0"), 1, "no delay")
    run.let_pass(300)
    group.leave("a")
    group.join("a", "without delay")


@scenario_on("streams groups")
def streams_rack_tags(run: Run) -> None:
    group = _stateful(run, 2)
    name = "streams.rack.aware.assignment.tags"
    group.enter("a", tags={"zone": "1"})
    run.send(setting(group.group, name, "zone,cluster"), 1, "two tags")
    run.let_pass(300)
    group.beat("a", "a tag is missing")
    group.beat("a", "version 0", version=0)
    group.beat("a", "all tags", tags={"zone": "1", "cluster": "2"})
    group.beat("a", "no tags", tags={})
    group.show("described")
    run.send(setting(group.group, name, ""), 1, "no tags are needed")
    run.let_pass(300)
    group.beat("a", "as before")


@scenario_on("streams groups")
def streams_settings(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("a")
    for name, value in (
        ("streams.heartbeat.interval.ms", "7000"),
        ("streams.heartbeat.interval.ms", "4999"),
        ("streams.heartbeat.interval.ms", "15001"),
        ("streams.session.timeout.ms", "50000"),
        ("streams.session.timeout.ms", "44999"),
        ("streams.session.timeout.ms", "60001"),
        ("streams.num.standby.replicas", "-1"),
        ("streams.num.standby.replicas", "3"),
        ("streams.initial.rebalance.delay.ms", "-1"),
        ("streams.assignor.name", "sticky"),
        ("streams.assignor.name", "other"),
        ("streams.assignment.interval.ms", "15001"),
        ("streams.task.offset.interval.ms", "14999"),
        ("streams.task.offset.interval.ms", "15000"),
        ("streams.acceptable.recovery.lag", "-1"),
        ("streams.acceptable.recovery.lag", "7"),
        ("streams.num.warmup.replicas", "1"),
        ("streams.num.warmup.replicas", "21"),
    ):
        run.send(setting(group.group, name, value), 1, f"{name}={value}")
    run.let_pass(300)
    for version in (0, 1):
        group.beat("a", f"its settings, version {version}", version=version)
    group.leave("a")
