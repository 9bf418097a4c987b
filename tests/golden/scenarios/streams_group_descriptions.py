"""Descriptions of topologies (KIP-1331), with a plugin that keeps them or fails: see `shelf`."""

from __future__ import annotations

from tests.golden.group_requests import delete_groups, join, list_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.streams_group_requests import (
    DESCRIBE,
    Streamers,
    describe_streams,
    part,
    records_of,
    topology,
)
from wire.schemas.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

SOURCE, PROCESSOR, SINK = 1, 2, 3
EPOCH = 2


def _description(
    group: str,
    member: str = "m",
    *,
    epoch: int = EPOCH,
    source: int = SOURCE,
    processor: int = PROCESSOR,
) -> StreamsGroupTopologyDescriptionUpdateRequest:
    """Three nodes with fields that nodes of their type do not have."""
    first = TopologyDescriptionNode(
        name="n", node_type=source, source_topics=["b", "a"], successors=["o", "p"],
        stores=["x"], sink_topic="s",
    )  # fmt: skip
    second = TopologyDescriptionNode(
        name="o", node_type=processor, stores=["s", "t"], source_topics=["z"], sink_topic="q"
    )
    last = TopologyDescriptionNode(name="k", node_type=SINK, stores=["s"])
    return StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=group,
        member_id=member,
        topology_epoch=epoch,
        topology_description=TopologyDescription(
            subtopologies=[
                TopologyDescriptionSubtopology(subtopology_id="0", nodes=[first, second, last])
            ],
            global_stores=[TopologyDescriptionGlobalStore(source=first, processor=second)],
        ),
    )


def _show(run: Run, group: str, note: str) -> None:
    run.send(describe_streams(group, with_description=True), DESCRIBE, note)


def _play(run: Run, suffix: str) -> None:
    """The life of a group whose name tells the plugin what to do."""
    topic = make_topic(run)[0]
    group = Streamers(run, run.group(suffix), topology(part("0", topic), epoch=EPOCH))
    name = group.group
    run.send(_description(name), 0, "an unknown group")
    group.join("m")
    group.beat("m")
    group.join("v", "a member of version 0", version=0)
    for note, request in (
        ("no member", _description(name, "")),
        ("an unknown member", _description(name, "x")),
        ("no group", _description("")),
        ("another epoch", _description(name, epoch=3)),
        ("type 0", _description(name, source=0)),
        ("type 4", _description(name, source=4)),
        ("a global store without source", _description(name, source=PROCESSOR)),
        ("a global store without processor", _description(name, processor=SOURCE)),
    ):
        run.send(request, 0, note)
    _show(run, name, "not stored yet")
    run.send(_description(name), 0, "a description")
    _show(run, name, "after the description")
    group.join("n", "a new member")
    group.beat("n")
    older = topology(part("0", topic), epoch=EPOCH - 1)
    group.join("o", "a member with an older topology", topology=older)
    run.send(_description(name, "n"), 0, "a description by another member")
    run.send(delete_groups(name), 3, "deleted with members")
    for member in ("m", "n", "o", "v"):
        group.leave(member)
    records_of(run, name, "the records")
    for version in (2, 3):
        run.send(delete_groups(name), version, f"deleted without members, version {version}")
    records_of(run, name, "the records in the end")
    _show(run, name, "after the deletion")
    group.join("m", "joins anew")
    group.beat("m", "again")
    _show(run, name, "joined anew")
    run.send(list_groups(types=["streams"]), 5, "the group")


@scenario_on("described streams groups")
def streams_description_is_stored(run: Run) -> None:
    warm_up(run)
    _play(run, "stored")


@scenario_on("described streams groups")
def streams_description_fails(run: Run) -> None:
    warm_up(run)
    _play(run, "fails")


@scenario_on("described streams groups")
def streams_description_is_refused(run: Run) -> None:
    warm_up(run)
    _play(run, "refused")


@scenario_on("described streams groups")
def streams_description_is_unreadable(run: Run) -> None:
    warm_up(run)
    _play(run, "unreadable")


@scenario_on("described streams groups")
def streams_description_cannot_be_deleted(run: Run) -> None:
    warm_up(run)
    _play(run, "kept")


@scenario_on("described streams groups")
def streams_description_of_a_group_that_becomes_classic(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run)[0]
    for suffix in ("stored", "kept"):
        group = Streamers(run, run.group(suffix), topology(part("0", topic), epoch=EPOCH))
        group.join("m")
        run.send(_description(group.group), 0, f"{suffix}: a description")
        run.send(join(group.group), 3, f"{suffix}: a classic member joins a group with members")
        group.leave("m")
        run.send(join(group.group, "x"), 3, f"{suffix}: a classic member with an id joins")
        run.send(join(group.group), 3, f"{suffix}: a classic member joins")
        _show(run, group.group, f"{suffix}: described")
        run.send(list_groups(), 5, f"{suffix}: the groups")
