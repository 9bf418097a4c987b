"""The normal life of a classic group, at every version of every request."""

from __future__ import annotations

from tests.golden.group_requests import (
    commit,
    delete_groups,
    delete_offsets,
    describe,
    describe_consumers,
    fetch_offsets,
    fetched_group,
    find,
    first_beat,
    heartbeat,
    join,
    leave,
    list_groups,
    sync,
)
from tests.golden.members import ID_REQUIRED_FROM, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from wire.schemas.offset_fetch import OffsetFetchRequest


@scenario_on("groups")
def classic_group_versions(run: Run) -> None:
    warm_up(run)
    for version in range(10):
        group = run.group(f"v{version}")
        told = run.send(join(group, reason="to see"), version, "join without a member id")
        if version >= ID_REQUIRED_FROM:
            told = run.send(join(group, told.member_id), version, "join with it")
        member, generation = told.member_id, told.generation_id
        run.send(describe(group), min(version, 6), "before the sync")
        run.send(heartbeat(group, member, generation), min(version, 4), "before the sync")
        given = sync(group, member, generation, {member: b"given"})
        run.send(given, min(version, 5), "the leader's sync")
        run.send(heartbeat(group, member, generation), min(version, 4), "a member")
        run.send(describe(group), min(version, 6), "stable")
        run.send(join(group, member), version, "the leader joins again")
        run.send(sync(group, member, generation + 1), min(version, 5), "a sync without assignments")
        out = min(version, 5)
        run.send(leave(group, member, version=out, reason="enough"), out, "leave")
        run.send(leave(group, member, version=out), out, "leave again")
        run.send(describe(group), min(version, 6), "empty")
        run.send(delete_groups(group), min(version, 3), "delete")
        run.send(describe(group), min(version, 6), "deleted")


@scenario_on("groups")
def group_is_listed_in_each_version(run: Run) -> None:
    warm_up(run)
    group = run.group()
    for version in range(6):
        run.send(list_groups(), version, "nothing yet")
    told = run.setup(join(group), 3)
    for version in range(6):
        run.send(list_groups(), version, "one group")
    run.setup(leave(group, told.member_id), 5)
    for version in range(6):
        run.send(list_groups(), version, "an empty group")


@scenario_on("groups")
def find_coordinator_of_groups(run: Run) -> None:
    warm_up(run)
    names = ["a", "group", "a b", "grüppe", "x" * 300, "/", "a\nb", "."]
    for version in range(4, 7):
        run.send(find(*names), version, "odd names")
        run.send(find("t", key_type=-1), version, "key type -1")


@scenario_on("untouched")
def before_the_offsets_topic_is_there(run: Run) -> None:
    """Before the first FindCoordinator, every request about a group is answered: no coordinator."""
    group, (topic, _) = run.group(), make_topic(run)
    for version in (0, 3, 4, 6, 7, 9):
        run.send(join(group), version, "join")
    for version in (0, 3, 5):
        run.send(sync(group, "m", 1), version, "sync")
    for version in (0, 4):
        run.send(heartbeat(group, "m", 1), version, "heartbeat")
    for version in (0, 2, 3, 5):
        run.send(leave(group, "m", version=version), version, "leave")
    for version in (2, 9):
        run.send(commit(group, topic, (0, 1)), version, "commit")
    for version in (1, 2, 7, 8, 9):
        run.send(fetch_offsets(group, (topic, [0]), version=version), version, "fetch")
    for version in (2, 8):
        everything = fetch_offsets(group, version=version, everything=True)
        run.send(everything, version, "fetch everything")
    rows = [fetched_group(group, (topic, [0])), fetched_group(run.group("b"), everything=True)]
    run.send(OffsetFetchRequest(groups=rows), 9, "fetch of two groups")
    run.send(delete_offsets(group, (topic, [0])), 0, "delete offsets")
    for version in (0, 5, 6):
        run.send(describe(group), version, "describe")
    for version in (0, 3):
        run.send(delete_groups(group), version, "delete")
    for version in (0, 5):
        run.send(list_groups(), version, "list")
    for version in (0, 1):
        run.send(first_beat(group, "m" if version else "", topic), version, "consumer heartbeat")
        run.send(describe_consumers(group), version, "describe as consumers")
