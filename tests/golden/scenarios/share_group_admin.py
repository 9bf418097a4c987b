"""Share groups in ShareGroupDescribe, ListGroups, DeleteGroups, and in the APIs of other groups."""

from __future__ import annotations

from tests.golden.group_requests import beat as consumer_beat
from tests.golden.group_requests import (
    commit,
    delete_groups,
    delete_offsets,
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
from tests.golden.share_group_requests import (
    BEAT,
    DESCRIBE,
    Sharers,
    alter,
    beat,
    describe_share,
    forget,
    show_offsets,
    warm_up_state,
)
from tests.golden.transaction_requests import (
    add_offsets,
    end,
    owned,
    txn_commit,
    warm_up_transactions,
)
from wire.schemas.update_features import FeatureUpdateKey, UpdateFeaturesRequest

DOWN = 2
FEATURE = "share.version"


def _some_of_each(run: Run) -> dict[str, str]:
    """Make a share group in each state, and groups of the other types; return them by kind."""
    warm_up(run)
    warm_up_state(run)
    topic = make_topic(run, partitions=2)
    names = ("shared", "left", "altered", "offsets", "classic", "consumers")
    groups = {name: run.group(name) for name in names}
    Sharers(run, groups["shared"]).enter("m", topic[0], count=2)
    Sharers(run, groups["left"]).enter("m", topic[0], count=2)
    run.setup(beat(groups["left"], "m", -1), BEAT)
    run.setup(alter(groups["altered"], (topic[0], {0: 0})), 0)
    run.setup(commit(groups["offsets"], topic, (0, 1)), 9)
    form(run, groups["classic"], "a")
    run.setup(first_beat(groups["consumers"], "m", topic[0]), 1)
    return groups


@scenario_on("share groups")
def describe_share_groups_of_each_kind(run: Run) -> None:
    groups = _some_of_each(run)
    for kind, group in groups.items():
        run.send(describe_share(group), DESCRIBE, kind)
    run.send(describe_share(run.group("unknown")), DESCRIBE, "unknown")
    run.send(describe_share(""), DESCRIBE, "the empty group")
    run.send(describe_share(), DESCRIBE, "none")
    several = describe_share(groups["shared"], "", run.group("unknown"), groups["left"])
    run.send(several, DESCRIBE, "several")
    run.send(describe_share(groups["shared"], groups["shared"]), DESCRIBE, "one twice")
    asked = describe_share(groups["shared"], groups["classic"], operations=True)
    run.send(asked, DESCRIBE, "with authorised operations")
    run.send(describe_share(groups["shared"]), 0, "the version of the early access")


@scenario_on("share groups")
def list_share_groups(run: Run) -> None:
    _some_of_each(run)
    for version in range(6):
        run.send(list_groups(), version, "all")
    for kind in ("share", "SHARE", "Share", "classic", "consumer", "streams", "shared"):
        run.send(list_groups(types=[kind]), 5, f"type {kind!r}")
    for state in ("Stable", "Empty", "Dead", "empty"):
        run.send(list_groups(types=["share"], states=[state]), 5, f"share, state {state!r}")
        run.send(list_groups(states=[state]), 4, f"state {state!r}")
    run.send(list_groups(types=["share", "classic"]), 5, "two types")


@scenario_on("share groups")
def delete_share_groups(run: Run) -> None:
    groups = _some_of_each(run)
    for version in range(3):
        run.send(delete_groups(groups["shared"]), version, "with a member")
    run.send(delete_groups(groups["left"]), 2, "without members")
    run.send(delete_groups(groups["left"]), 2, "again")
    run.send(delete_groups(groups["altered"], groups["shared"]), 2, "one of two is possible")
    run.send(describe_share(groups["left"], groups["altered"]), DESCRIBE, "they are gone")
    run.send(show_offsets(groups["left"], everything=True), 1, "their offsets, too")
    run.send(list_groups(types=["share"]), 5, "the others")
    empty = Sharers(run, run.group("nothing"))
    empty.join("m", run.topic("unknown"), note="a member without partitions")
    empty.leave("m")
    run.send(delete_groups(empty.group), 2, "without state")
    topic = make_topic(run, "t2")
    group = Sharers(run, groups["left"])
    group.join("m", topic[0], note="the same group again")
    group.until_assigned("m")
    group.show("the same group again")


@scenario_on("share groups")
def other_requests_to_share_groups(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    for kind in ("shared", "left", "altered"):
        group = groups[kind]
        for version in range(10):
            run.send(join(group), version, f"{kind}: a classic member joins")
        run.send(join(group, "m"), 9, f"{kind}: the member joins as a classic one")
        run.send(join(group, kind="share"), 9, f"{kind}: protocol type share")
        run.send(join(group, instance="i"), 9, f"{kind}: a static member joins")
        for version in (0, 3, 5):
            run.send(sync(group, "m", 3), version, f"{kind}: it syncs")
        for version in (0, 4):
            run.send(heartbeat(group, "m", 3), version, f"{kind}: it lives")
        for version in (0, 5):
            run.send(leave(group, "m", version=version), version, f"{kind}: it leaves")
        for version in (0, 1):
            request = first_beat(group, "c", topic[0])
            run.send(request, version, f"{kind}: a consumer joins")
            run.send(consumer_beat(group, "m", 3), version, f"{kind}: a consumer lives")
            run.send(consumer_beat(group, "m", -1), version, f"{kind}: a consumer leaves")
            run.send(describe_consumers(group), version, f"{kind}: described as consumers")
        for version in (2, 5, 8, 9, 10):
            request = commit(group, topic, (0, 1), version=version)
            run.send(request, version, f"{kind}: a commit without member")
            request = commit(group, topic, (0, 1), version=version, member="m", generation=3)
            run.send(request, version, f"{kind}: a commit of the member")
        for version in (1, 5, 7, 8, 9, 10):
            request = fetch_offsets(group, (topic, [0]), version=version)
            run.send(request, version, f"{kind}: offsets")
        request = fetch_offsets(group, (topic, [0]), version=9, member="m", epoch=3)
        run.send(request, 9, f"{kind}: offsets of the member")
        run.send(fetch_offsets(group, version=9, everything=True), 9, f"{kind}: all offsets")
        run.send(delete_offsets(group, (topic[0], [0])), 0, f"{kind}: offsets are deleted")
        for version in (0, 5, 6):
            run.send(describe(group), version, f"{kind}: described")
    run.send(list_groups(), 5, "the groups are as they were")


@scenario_on("share groups")
def transactions_with_share_groups(run: Run) -> None:
    groups = _some_of_each(run)
    warm_up_transactions(run)
    topic = make_topic(run, "t2")
    for kind in ("shared", "left"):
        group, name = groups[kind], run.group(f"id {kind}")
        producer = owned(run, name)
        run.send(add_offsets(name, producer, group), 3, f"{kind}: a group is added")
        for version in range(6):
            request = txn_commit(name, producer, group, topic, (0, 1), version=version)
            run.send(request, version, f"{kind}: a commit")
        run.send(end(name, producer), 3, f"{kind}: it ends")
        run.send(fetch_offsets(group, (topic, [0]), version=9), 9, f"{kind}: offsets")
    run.send(list_groups(), 5, "the groups are as they were")


@scenario_on("share groups")
def share_members_join_other_groups(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    (gone,) = form(run, run.group("gone"), "a")
    gone.leave(keep=False)
    for kind, group in {**groups, "gone": run.group("gone")}.items():
        if kind in ("shared", "left", "altered"):
            continue
        for epoch in (0, 1, -1):
            run.send(beat(group, "m", epoch, [topic[0]]), BEAT, f"{kind}: epoch {epoch}")
        run.send(show_offsets(group, everything=True), 1, f"{kind}: its offsets")
        run.send(show_offsets(group, (topic[0], [0])), 1, f"{kind}: offsets of a topic")
        run.send(alter(group, (topic[0], {0: 1})), 0, f"{kind}: offsets are set")
        run.send(forget(group, topic[0]), 0, f"{kind}: offsets are deleted")
    run.send(list_groups(), 5, "the groups are as they were")


@scenario_on("share groups")
def share_groups_without_their_feature(run: Run) -> None:
    groups = _some_of_each(run)
    topic = make_topic(run, "t2")
    for level in (1, 0):
        update = FeatureUpdateKey(feature=FEATURE, max_version_level=level, upgrade_type=DOWN)
        run.setup(UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[update]), 1)
        note = f"level {level}"
        run.send(beat(groups["shared"], "m", 3), BEAT, f"{note}: lives")
        run.send(beat(groups["shared"], "", 3), BEAT, f"{note}: no member id")
        run.send(beat(run.group(note), "n", 0, [topic[0]]), BEAT, f"{note}: joins")
        run.send(describe_share(groups["shared"], ""), DESCRIBE, f"{note}: described")
        for version in (0, 1):
            request = show_offsets(groups["altered"], everything=True)
            run.send(request, version, f"{note}: offsets")
        run.send(alter(groups["altered"], (topic[0], {0: 1})), 0, f"{note}: offsets are set")
        run.send(alter(""), 0, f"{note}: offsets of no group are set")
        run.send(forget(groups["altered"], topic[0]), 0, f"{note}: offsets are deleted")
        run.send(list_groups(types=["share"]), 5, f"{note}: listed")
    run.send(delete_groups(groups["altered"]), 2, "deleted without the feature")
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=2, upgrade_type=1)
    run.setup(UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[update]), 1)
    run.send(beat(groups["shared"], "m", 3), BEAT, "lives again")
