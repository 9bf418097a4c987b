"""Streams groups in StreamsGroupDescribe, ListGroups, DeleteGroups, and in other groups' APIs."""

from __future__ import annotations

from tests.golden.group_requests import beat as consumer_beat
from tests.golden.group_requests import (
    commit,
    delete_groups,
    describe,
    describe_consumers,
    fetch_offsets,
    first_beat,
    heartbeat,
    join,
    leave,
    list_groups,
    sync,
)
from tests.golden.members import form, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.scenarios.features import SAFE, UPGRADE, update
from tests.golden.share_group_requests import beat as share_beat
from tests.golden.share_group_requests import describe_share
from tests.golden.streams_group_requests import (
    BEAT,
    Streamers,
    beat,
    describe_streams,
    part,
    topology,
)
from tests.golden.streams_group_requests import first_beat as streams_join
from wire.schemas.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
)


def _some_of_each(run: Run) -> dict[str, str]:
    """Make a streams group in some states, and groups of the other types; return them by kind."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    names = ("stable", "left", "waiting", "offsets", "classic", "consumers")
    groups = {name: run.group(name) for name in names}
    given = topology(part("0", topic[0]))
    Streamers(run, groups["stable"], given).enter("m")
    left = Streamers(run, groups["left"], given)
    left.enter("m")
    run.setup(beat(groups["left"], "m", -1), BEAT)
    missing = topology(part("0", run.topic("missing")))
    Streamers(run, groups["waiting"], missing).enter("m")
    run.setup(commit(groups["offsets"], topic, (0, 1)), 9)
    form(run, groups["classic"], "a")
    run.setup(first_beat(groups["consumers"], "m", topic[0]), 1)
    return groups


@scenario_on("streams groups")
def describe_streams_groups_of_each_kind(run: Run) -> None:
    groups = _some_of_each(run)
    for version in (0, 1):
        for kind, group in groups.items():
            run.send(describe_streams(group), version, kind)
        run.send(describe_streams(run.group("unknown")), version, "unknown")
        run.send(describe_streams(""), version, "the empty group")
        run.send(describe_streams(), version, "none")
        run.send(describe_streams(groups["stable"], groups["stable"]), version, "one twice")
        asked = describe_streams(groups["stable"], groups["classic"], operations=True)
        run.send(asked, version, "with authorised operations")
    asked = describe_streams(groups["stable"], run.group("unknown"), with_description=True)
    run.send(asked, 1, "with the description of the topology")


@scenario_on("streams groups")
def list_streams_groups(run: Run) -> None:
    _some_of_each(run)
    for version in range(6):
        run.send(list_groups(), version, "all")
    for kind in ("streams", "STREAMS", "Streams", "classic", "consumer", "share", "stream"):
        run.send(list_groups(types=[kind]), 5, f"type {kind!r}")
    for state in ("Stable", "Empty", "Dead", "NotReady", "not_ready", "Assigning", "Reconciling"):
        run.send(list_groups(types=["streams"], states=[state]), 5, f"streams, state {state!r}")
        run.send(list_groups(states=[state]), 4, f"state {state!r}")


@scenario_on("streams groups")
def delete_streams_groups(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2", partitions=2)
    for version in range(4):
        run.send(delete_groups(groups["stable"]), version, "with a member")
    run.setup(commit(groups["left"], topic, (0, 1)), 9)
    run.send(delete_groups(groups["left"]), 2, "without members")
    run.send(delete_groups(groups["left"]), 2, "again")
    run.send(delete_groups(groups["waiting"], groups["left"]), 2, "one with a member, one gone")
    run.send(describe_streams(groups["left"]), 1, "it is gone")
    run.send(fetch_offsets(groups["left"], version=9, everything=True), 9, "its offsets, too")
    run.send(list_groups(types=["streams"]), 5, "the others")
    group = Streamers(run, groups["left"], topology(part("5", topic[0]), epoch=1))
    group.join("m", "the same group again")
    group.own("m")
    group.show("the same group again")


@scenario_on("streams groups")
def other_requests_to_streams_groups(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    for kind in ("stable", "waiting"):
        group = groups[kind]
        for version in (0, 4, 9):
            run.send(join(group), version, f"{kind}: a classic member joins")
        run.send(join(group, "m"), 9, f"{kind}: the member joins as a classic one")
        run.send(join(group, kind="streams"), 9, f"{kind}: protocol type streams")
        run.send(join(group, instance="i"), 9, f"{kind}: a static member joins")
        for version in (0, 5):
            run.send(sync(group, "m", 2), version, f"{kind}: it syncs")
        for version in (0, 4):
            run.send(heartbeat(group, "m", 2), version, f"{kind}: it lives")
        for version in (0, 5):
            run.send(leave(group, "m", version=version), version, f"{kind}: it leaves")
        run.send(first_beat(group, "c", topic[0]), 1, f"{kind}: a consumer joins")
        run.send(consumer_beat(group, "m", 2), 1, f"{kind}: a consumer lives")
        run.send(consumer_beat(group, "m", -1), 1, f"{kind}: a consumer leaves")
        run.send(describe_consumers(group), 1, f"{kind}: described as consumers")
        run.send(share_beat(group, "m", 0, [topic[0]]), 1, f"{kind}: a sharing member joins")
        run.send(describe_share(group), 1, f"{kind}: described as sharing")
        for version in (0, 5, 6):
            run.send(describe(group), version, f"{kind}: described")
    run.send(list_groups(), 5, "the groups are as they were")


@scenario_on("streams groups")
def other_members_join_an_empty_streams_group(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    given = topology(part("0", topic[0]))
    names = ("consumer", "share", "classic", "named")
    groups = {name: run.group(name) for name in names}
    for group in groups.values():
        Streamers(run, group, given).enter("m")
        run.setup(beat(group, "m", -1), BEAT)
    run.send(first_beat(groups["consumer"], "c", topic[0]), 1, "a consumer joins")
    run.send(share_beat(groups["share"], "s", 0, [topic[0]]), 1, "a sharing member joins")
    run.send(join(groups["named"], "m"), 9, "a classic member with an id joins")
    run.send(join(groups["classic"]), 3, "a classic member joins")
    run.send(list_groups(), 5, "the types")


@scenario_on("streams groups")
def streams_members_join_other_groups(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    given = topology(part("0", topic[0]))
    (gone,) = form(run, run.group("gone"), "a")
    gone.leave(keep=False)
    for kind, group in {**groups, "gone": run.group("gone")}.items():
        if kind in ("stable", "left", "waiting"):
            continue
        for epoch in (1, -1):
            run.send(beat(group, "m", epoch), BEAT, f"{kind}: epoch {epoch}")
        run.send(streams_join(group, "m", given), BEAT, f"{kind}: joins")
        run.send(describe_streams(group), 1, f"{kind}: described")
    run.send(list_groups(), 5, "the types")


@scenario_on("features")
def streams_groups_without_their_feature(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    given = topology(part("0", topic[0]))
    run.setup(update(("streams.version", 0), kind=SAFE), 1)
    for version in (0, 1):
        run.send(beat(groups["stable"], "m", 2), version, "lives")
        run.send(beat(groups["stable"], "", 2), version, "no member id")
        run.send(streams_join(run.group("new"), "n", given), version, "joins")
        run.send(describe_streams(groups["stable"], ""), version, "described")
    run.send(_description(groups["stable"]), 0, "a description")
    run.send(list_groups(types=["streams"]), 5, "listed")
    run.send(delete_groups(groups["left"]), 2, "deleted without the feature")
    run.setup(update(("streams.version", 1), kind=UPGRADE), 1)
    run.send(beat(groups["stable"], "m", 2), BEAT, "lives again")


def _description(
    group: str, member: str = "m", epoch: int = 0
) -> StreamsGroupTopologyDescriptionUpdateRequest:
    return StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=group,
        member_id=member,
        topology_epoch=epoch,
        topology_description=TopologyDescription(),
    )


@scenario_on("streams groups")
def streams_descriptions_without_plugin(run: Run) -> None:
    groups = _some_of_each(run)
    for note, request in (
        ("the member", _description(groups["stable"])),
        ("an unknown group", _description(run.group("unknown"))),
        ("no group", _description("")),
        ("no member", _description(groups["stable"], "")),
        ("another epoch", _description(groups["stable"], epoch=7)),
    ):
        run.send(request, 0, note)


@scenario_on("classic only")
def streams_groups_without_their_protocol(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)
    for version in (0, 1):
        run.send(streams_join(run.group(), "m", topology(part("0", topic[0]))), version, "joins")
        run.send(describe_streams(run.group()), version, "described")
    run.send(_description(run.group()), 0, "a description")
