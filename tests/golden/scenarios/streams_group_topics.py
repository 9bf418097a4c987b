"""StreamsGroupHeartbeat: topologies, internal topics and their partition counts, statuses."""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import list_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.scenarios.configs import TOPIC, described
from tests.golden.streams_group_requests import Streamers, grown, internal, part, topology
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic


def _counts(run: Run, note: str, *names: str) -> None:
    """One step: the partition counts of topics, -1 for missing ones."""
    rows = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
    answer: Any = run.setup(request, 12)
    counts = {row.name: len(row.partitions) if row.error_code == 0 else -1 for row in answer.topics}
    run.keep(note, counts)


@scenario_on("streams groups")
def streams_topology_epochs(run: Run) -> None:
    warm_up(run)
    topic, other = make_topic(run)[0], make_topic(run, "other")[0]
    group = Streamers(run, run.group(), topology(part("0", topic), epoch=5))
    group.join("a")
    group.beat("a")
    group.join("b", "the same topology")
    group.join("c", "an older one", topology=topology(part("0", topic), epoch=4))
    group.beat("c", "hears it again")
    group.join("d", "an older one of other content", topology=topology(part("9", other), epoch=0))
    group.join("e", "a newer one", topology=topology(part("0", topic), epoch=6))
    group.join("e", "other content", topology=topology(part("0", other), epoch=5))
    group.join("e", "a part more", topology=topology(part("0", topic), part("1", other), epoch=5))
    group.settle("a", "b", "c", "d")
    group.show("four members")
    group.join("c", "the present one", topology=topology(part("0", topic), epoch=5))
    for member in ("a", "b", "c", "d"):
        group.leave(member)
    group.join("e", "a newer one in the empty group", topology=topology(part("0", topic), epoch=6))
    group.join("e", "the order of parts", topology=topology(part("0", topic), epoch=5))


@scenario_on("streams groups")
def streams_order_of_parts(run: Run) -> None:
    warm_up(run)
    one, other = make_topic(run, "one")[0], make_topic(run, "other")[0]
    group = Streamers(run, run.group(), topology(part("0", one, other), part("1", one)))
    group.join("a")
    group.join("b", "parts in the other order", topology=topology(
        part("1", one), part("0", one, other)))  # fmt: skip
    group.join("b", "sources in the other order", topology=topology(
        part("0", other, one), part("1", one)))  # fmt: skip


@scenario_on("streams groups")
def streams_missing_source(run: Run) -> None:
    warm_up(run)
    name = run.topic("late")
    group = Streamers(run, run.group(), topology(part("0", name)))
    group.join("a")
    group.beat("a")
    group.beat("a", "owned tasks are not checked", owns=({"7": [7]}, {}, {}))
    group.show("not ready")
    for state in ("NotReady", "not_ready", "NOT_READY", "Empty", "Stable"):
        run.send(list_groups(states=[state]), 5, f"state {state!r}")
    make_topic(run, "late", partitions=2)
    run.let_pass(300)
    group.own("a", "the source exists")
    group.own("a")
    group.show("ready")
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
    run.setup(gone, 6)
    run.let_pass(500)
    group.own("a", "the source has gone")
    group.own("a")
    group.show("not ready again")


@scenario_on("streams groups")
def streams_internal_topics(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=3)[0]
    repartition, fixed, changelog = run.topic("r"), run.topic("f"), run.topic("c")
    given = topology(
        part("0", topic, sinks=[repartition, fixed]),
        part(
            "1",
            repartition=[internal(repartition, cleanup_policy="delete"), internal(fixed, 5)],
            changelogs=[internal(changelog, replicas=0, cleanup_policy="compact")],
        ),
    )
    group = Streamers(run, run.group(), given)
    group.enter("a")
    _counts(run, "partition counts", repartition, fixed, changelog)
    for name in (repartition, changelog):
        run.send(described((TOPIC, name), keys=["cleanup.policy"]), 4, f"settings of {name}")
    group.own("a")
    group.settle("a")
    group.show("ready")
    again = Streamers(run, run.group("again"), given)
    again.join("m", "another group with the same topics")


@scenario_on("streams groups")
def streams_one_missing_internal_topic(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    given = topology(part("0", topic, changelogs=[internal(run.topic("c"))]))
    group = Streamers(run, run.group(), given)
    group.join("a")
    group.show("at first")
    group.until_ready("a")
    group.own("a")
    group.show("ready")


@scenario_on("streams groups")
def streams_topics_that_cannot_be_created(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    for note, wrong in (
        ("too many replicas", internal(run.topic("r"), replicas=2)),
        ("an unknown setting", internal(run.topic("u"), no_such_setting="1")),
        ("a wrong value", internal(run.topic("v"), retention_ms="x")),
    ):
        given = topology(part("0", topic, changelogs=[wrong]))
        group = Streamers(run, run.group(note), given)
        group.join("a", note)
        run.let_pass(500)
        group.beat("a", f"{note}: it failed")
        group.beat("a", f"{note}: it is not tried again")
        group.show(note)


@scenario_on("streams groups")
def streams_copartition(run: Run) -> None:
    warm_up(run)
    two, three = make_topic(run, "two", partitions=2)[0], make_topic(run, "three", partitions=3)[0]
    names = [run.topic(name) for name in "abcdefgh"]
    a, b, c, d, e, f, g, h = names
    cases = [
        ("external and flexible", [
            part("0", three, sinks=[a]),
            part("1", two, repartition=[internal(a)], together=[([0], [0])])]),
        ("external and fixed, equal", [
            part("0", three, sinks=[b]),
            part("1", two, repartition=[internal(b, 2)], together=[([0], [0])])]),
        ("external and fixed, different", [
            part("0", three, sinks=[c]),
            part("1", two, repartition=[internal(c, 4)], together=[([0], [0])])]),
        ("two flexible", [
            part("0", two, sinks=[d]),
            part("1", three, sinks=[e]),
            part("2", repartition=[internal(d), internal(e)], together=[([], [0, 1])])]),
        ("a flexible and a fixed one", [
            part("0", two, sinks=[f]),
            part("1", three, sinks=[g]),
            part("2", repartition=[internal(f), internal(g, 5)], together=[([], [0, 1])])]),
        ("two fixed, different", [
            part("0", two, sinks=[c, h]),
            part("1", repartition=[internal(c, 2), internal(h, 3)], together=[([], [0, 1])])]),
        ("external, different", [part("0", two, three, together=[([0, 1], [])])]),
    ]  # fmt: skip
    for note, parts in cases:
        group = Streamers(run, run.group(note), topology(*parts))
        group.enter("m")
        group.own("m", note)
        group.show(note)
    _counts(run, "partition counts", *names)


@scenario_on("streams groups")
def streams_existing_internal_topics(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    fits, differs = make_topic(run, "fits", partitions=2)[0], make_topic(run, "differs")[0]
    for name in (fits, differs):
        given = topology(part("0", topic, changelogs=[internal(name)]))
        group = Streamers(run, run.group(name), given)
        group.join("a", f"an existing changelog, {name}")
        group.own("a", f"{name} again")
    given = topology(part("0", topic, sinks=[differs]), part("1", repartition=[internal(differs)]))
    group = Streamers(run, run.group("r"), given)
    group.join("a", "an existing repartition topic")


@scenario_on("streams groups")
def streams_source_grows(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    stateless = Streamers(run, run.group("stateless"), topology(part("0", topic)))
    stateless.enter("a")
    given = topology(part("0", topic, changelogs=[internal(run.topic("c"))]))
    group = Streamers(run, run.group(), given)
    group.enter("a", process_id="p")
    group.settle("a")
    run.setup(grown(topic, 4), 3)
    run.let_pass(500)
    stateless.own("a", "stateless: two tasks more")
    group.own("a", "its changelog does not fit")
    group.own("a")
    group.show("not ready")
    group.join("b", "nothing for a new member", process_id="q")
    run.setup(grown(run.topic("c"), 4), 3)
    run.let_pass(500)
    group.settle("a", "b")
    group.show("somebody has acted")
