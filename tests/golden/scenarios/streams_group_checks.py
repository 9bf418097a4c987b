"""StreamsGroupHeartbeat (KIP-1071): requests that are refused, and the order of the checks."""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import list_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.streams_group_requests import (
    BEAT,
    Streamers,
    beat,
    first_beat,
    internal,
    part,
    topology,
)


@scenario_on("streams groups")
def streams_heartbeat_faults(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    given = topology(part("0", topic))
    changelog = internal(run.topic("changelog"), 3)
    none, some = ({}, {}, {}), ({"0": [0]}, {}, {})
    cases: list[tuple[str, dict[str, Any]]] = [
        ("no group id", {"group": ""}),
        ("a blank group id", {"group": " "}),
        ("no member id", {"member": ""}),
        ("a blank member id", {"member": " "}),
        ("a long member id", {"member": "x" * 300}),
        ("an empty instance id", {"instance_id": ""}),
        ("an empty rack", {"rack_id": ""}),
        ("a blank rack", {"rack_id": " "}),
        ("no rebalance time-out", {"rebalance_timeout_ms": -1}),
        ("a rebalance time-out of 0", {"rebalance_timeout_ms": 0}),
        ("a rebalance time-out of -2", {"rebalance_timeout_ms": -2}),
        ("active tasks", {"owns": some}),
        ("standby tasks", {"owns": ({}, {"0": [0]}, {})}),
        ("warm-up tasks", {"owns": ({}, {}, {"0": [0]})}),
        ("null tasks", {"owns": None}),
        ("null active tasks", {"owns": (None, {}, {})}),
        ("null standby tasks", {"owns": ({}, None, {})}),
        ("null warm-up tasks", {"owns": ({}, {}, None)}),
        ("no topology", {"given": None}),
        ("a regex", {"given": topology(part("0", topic, regex=["a.*"]))}),
        ("a regex and no member id", {"given": topology(part("0", regex=["a"])), "member": ""}),
        ("a changelog's count", {"given": topology(part("0", topic, changelogs=[changelog]))}),
        ("no subtopologies", {"given": topology()}),
        ("no sources", {"given": topology(part("0"))}),
        ("topology epoch -1", {"given": topology(part("0", topic), epoch=-1)}),
        ("topology epoch 7", {"given": topology(part("0", topic), epoch=7)}),
        ("a subtopology twice", {"given": topology(part("0", topic), part("0", topic))}),
        ("an internal topic", {"given": topology(part("0", "__consumer_offsets"))}),
        ("an illegal topic", {"given": topology(part("0", "a b"))}),
        ("an empty topic", {"given": topology(part("0", ""))}),
        ("an illegal and an internal topic", {
            "given": topology(part("0", "a b", "__transaction_state", "__consumer_offsets"))}),
        ("an illegal sink", {"given": topology(part("0", topic, sinks=["a/b"]))}),
        ("an illegal changelog", {
            "given": topology(part("0", topic, changelogs=[internal("a*b")]))}),
        ("an illegal repartition topic", {
            "given": topology(part("0", topic, repartition=[internal("?")]))}),
        ("a tag", {"tags": {"a": "b"}}),
        ("a null process", {"process_id": None}),
        ("null tags", {"tags": None}),
        ("epoch -1, unknown group", {"epoch": -1, "given": None}),
        ("epoch -1 with a topology", {"epoch": -1}),
        ("epoch -1 with an instance", {"epoch": -1, "given": None, "instance_id": "i"}),
        ("epoch -2", {"epoch": -2, "given": None}),
        ("epoch -2 with an instance", {"epoch": -2, "given": None, "instance_id": "i"}),
        ("epoch -2 with a topology", {"epoch": -2, "instance_id": "i"}),
        ("epoch -3", {"epoch": -3, "given": None}),
        ("epoch -3 with a topology", {"epoch": -3}),
        ("epoch -3, no member id", {"epoch": -3, "member": "", "given": None}),
        ("epoch 1, unknown group", {"epoch": 1, "given": None}),
        ("epoch 1 with a topology", {"epoch": 1}),
        ("epoch 1, a list is null", {"epoch": 1, "given": None, "owns": ({}, {}, None)}),
        ("epoch 1, no member id", {"epoch": 1, "member": "", "given": None}),
        ("no member id and no group id", {"member": "", "group": ""}),
        ("no time-out and active tasks", {"rebalance_timeout_ms": -1, "owns": some}),
        ("active tasks and no topology", {"owns": some, "given": None}),
        ("all is missing", {"rebalance_timeout_ms": -1, "owns": None, "given": None}),
        ("the largest epoch", {"epoch": 2**31 - 1, "given": None, "owns": none}),
        ("the least epoch", {"epoch": -(2**31), "given": None}),
    ]  # fmt: skip
    for note, changes in cases:
        fields = {"member": "m", "group": run.group(note), "given": given, **changes}
        where, who, what = fields.pop("group"), fields.pop("member"), fields.pop("given")
        run.send(first_beat(where, who, what, **fields), BEAT, note)
    run.send(list_groups(types=["streams"]), 5, "the groups")


@scenario_on("streams groups")
def streams_invalid_topologies(run: Run) -> None:
    warm_up(run)
    one, other = make_topic(run, "one")[0], make_topic(run, "other", partitions=2)[0]
    r, s, t = (run.topic(name) for name in "rst")
    cases = [
        ("a repartition topic that nobody writes", [part("0", one, repartition=[internal(r)])]),
        ("the same with a count", [part("0", one, repartition=[internal(t, 2)])]),
        ("a loop", [
            part("0", sinks=[r], repartition=[internal(s)]),
            part("1", sinks=[s], repartition=[internal(r)])]),
        ("a loop with a source", [
            part("0", one, sinks=["g-1"], repartition=[internal("g-2")]),
            part("1", sinks=["g-2"], repartition=[internal("g-1")])]),
        ("a loop with a count", [
            part("0", sinks=["g-3"], repartition=[internal("g-4", 3)]),
            part("1", sinks=["g-4"], repartition=[internal("g-3")])]),
        ("a sink that nobody reads", [part("0", one, sinks=[r])]),
        ("one source for two subtopologies", [part("0", one), part("1", one)]),
        ("topics that have to fit", [part("0", one, other, together=[([0, 1], [])])]),
        ("an index of a topic that is missing", [part("0", one, together=[([1], [])])]),
        ("a negative index", [part("0", one, together=[([-1], [])])]),
        ("an empty co-partition group", [part("0", one, together=[([], [])])]),
        ("a source that is missing", [part("0", run.topic("missing"))]),
        ("two that are missing", [part("0", run.topic("x")), part("1", run.topic("w"))]),
    ]  # fmt: skip
    for note, parts in cases:
        request = first_beat(run.group(note), "m", topology(*parts))
        run.send(request, BEAT, note)
    run.send(list_groups(types=["streams"]), 5, "the groups")


@scenario_on("streams groups")
def streams_owned_tasks_that_do_not_exist(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.join("m")
    for note, owned in (
        ("partition 2", ({"0": [2]}, {}, {})),
        ("partition -1", ({"0": [-1]}, {}, {})),
        ("subtopology 1", ({"1": [0]}, {}, {})),
        ("standby partition 2", ({}, {"0": [2]}, {})),
        ("warm-up subtopology 1", ({}, {}, {"1": [0]})),
        ("its tasks", ({"0": [0, 1]}, {}, {})),
        ("a part of its tasks", ({"0": [0]}, {}, {})),
        ("a partition twice", ({"0": [0, 0]}, {}, {})),
        ("no partition of a subtopology", ({"0": []}, {}, {})),
        ("standby tasks that it does not have", ({}, {"0": [0]}, {})),
        ("warm-up tasks that it does not have", ({"0": [0, 1]}, {}, {"0": [0]})),
        ("none", ({}, {}, {})),
    ):
        group.beat("m", note, owns=owned)
    request = beat(group.group, "m", group.epochs["m"], owns=({"0": [0]}, {}, {}))
    request.active_tasks = [*(request.active_tasks or ()), *(request.active_tasks or ())]
    run.send(request, BEAT, "a subtopology twice, at the target")
    request = beat(group.group, "m", group.epochs["m"], tags={"a": "b"})
    request.client_tags = [*(request.client_tags or ()), *(request.client_tags or ())]
    run.send(request, BEAT, "a tag twice")


@scenario_on("small streams groups")
def full_streams_group(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)[0]
    group = Streamers(run, run.group(), topology(part("0", topic)))
    group.enter("a")
    group.enter("b", instance_id="i")
    group.join("c", "a third member")
    group.join("c", "a third member with an instance", instance_id="j")
    group.beat("c", "an unknown member of a full group", epoch=1)
    group.beat("c", "an unknown member leaves a full group", epoch=-1)
    group.join("a", "joins again")
    group.join("c", "a third member with a known instance", instance_id="i")
    group.leave("b", "leaves for a while", epoch=-2, instance_id="i")
    group.join("c", "its successor", instance_id="i")
    group.leave("a")
    group.join("d", "there is room")
