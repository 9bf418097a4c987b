"""Describe-, Alter- and DeleteShareGroupOffsets."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.members import warm_up
from tests.golden.requests import make_topic, produce
from tests.golden.run import Run, scenario_on
from tests.golden.share_group_requests import (
    DESCRIBE,
    Sharers,
    alter,
    beat,
    describe_share,
    forget,
    offsets_of,
    records_of,
    show_offsets,
    warm_up_state,
)
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire.schemas.describe_share_group_offsets import DescribeShareGroupOffsetsRequest


def _ready(run: Run) -> None:
    warm_up(run)
    warm_up_state(run)


@scenario_on("share groups")
def describe_share_offsets(run: Run) -> None:
    _ready(run)
    topic, other = make_topic(run, partitions=3), make_topic(run, "other")
    run.setup(produce(topic, 9, simple(b"a", b"b", b"c", b"d")), 9)
    unknown = run.topic("unknown")
    group = run.group()
    run.setup(alter(group, (topic[0], {0: 1, 1: -1})), 0)
    for version in (0, 1):
        run.send(show_offsets(group, everything=True), version, "all")
        run.send(show_offsets(group), version, "none")
        run.send(show_offsets(group, (topic[0], [0, 1, 2])), version, "one topic")
        run.send(show_offsets(group, (topic[0], [2, 0])), version, "another order")
        run.send(show_offsets(group, (other[0], [0])), version, "a topic without state")
        run.send(show_offsets(group, (unknown, [0, 7])), version, "an unknown topic")
        request = show_offsets(group, (unknown, [0]), (topic[0], [0]), (other[0], [0]))
        run.send(request, version, "several topics")
        run.send(show_offsets(group, (topic[0], [])), version, "a topic without partitions")
        run.send(show_offsets(group, (unknown, [])), version, "an unknown one without partitions")
        run.send(show_offsets(group, (topic[0], [-1])), version, "partition -1")
        run.send(show_offsets(group, (unknown, [-1])), version, "partition -1 of an unknown one")
        run.send(show_offsets(group, (topic[0], [0, 0])), version, "a partition twice")
        nobody = run.group("unknown")
        run.send(show_offsets(nobody, everything=True), version, "an unknown group, all")
        run.send(show_offsets(nobody, (topic[0], [0])), version, "an unknown group, one topic")
        run.send(show_offsets("", everything=True), version, "the empty group, all")
        run.send(show_offsets("", (topic[0], [0])), version, "the empty group, one topic")
        run.send(show_offsets("", (unknown, [0])), version, "the empty group, an unknown topic")
        run.send(show_offsets(""), version, "the empty group, none")
        rows = [offsets_of(group, (topic[0], [0])), offsets_of(nobody, (topic[0], [1]))]
        several = DescribeShareGroupOffsetsRequest(groups=rows)
        run.send(several, version, "two groups")
        run.send(DescribeShareGroupOffsetsRequest(groups=[]), version, "no groups")


@scenario_on("share groups")
def lags_of_share_groups(run: Run) -> None:
    _ready(run)
    topic = make_topic(run)
    group = run.group()
    for start in (0, 2, 4, 5, 1000, -1, -5, 2**62):
        run.setup(alter(group, (topic[0], {0: start})), 0)
        run.send(show_offsets(group, (topic[0], [0])), 1, f"start {start}, an empty log")
    run.setup(produce(topic, 9, simple(b"a", b"b", b"c", b"d")), 9)
    run.send(show_offsets(group, (topic[0], [0])), 1, "four records")
    for start in (0, 2, 4, 5, 1000, -1, -5):
        run.setup(alter(group, (topic[0], {0: start})), 0)
        run.send(show_offsets(group, (topic[0], [0])), 1, f"start {start}, four records")


@scenario_on("share groups")
def alter_share_offsets(run: Run) -> None:
    _ready(run)
    topic, other = make_topic(run, partitions=3), make_topic(run, "other")
    unknown, group = run.topic("unknown"), run.group()
    run.send(alter("", (topic[0], {0: 1})), 0, "the empty group")
    run.send(alter(""), 0, "the empty group, nothing")
    run.send(alter(group, (topic[0], {0: 1})), 0, "an unknown group is created")
    run.send(describe_share(group), DESCRIBE, "it was created")
    records_of(run, group, "created")
    run.send(show_offsets(group, everything=True), 1, "its offsets")
    run.send(alter(group, (topic[0], {0: 2, 1: 7})), 0, "again, and another")
    run.send(alter(group, (topic[0], {2: 0, 3: 0, -1: 0})), 0, "unknown partitions")
    run.send(alter(group, (topic[0], {2: 0, 3: 0})), 0, "an unknown partition")
    run.send(alter(group, (topic[0], {0: 8}), (topic[0], {0: 9})), 0, "a topic twice")
    run.send(show_offsets(group, everything=True), 1, "after a topic twice")
    run.send(alter(group, (topic[0], {})), 0, "no partitions")
    run.send(alter(group), 0, "nothing")
    run.send(alter(group, (unknown, {0: 1, 1: 2})), 0, "an unknown topic")
    run.send(alter(group, (unknown, {})), 0, "an unknown topic without partitions")
    run.send(alter(group, ("", {0: 1}), ("a b", {0: 1})), 0, "illegal names")
    several = alter(group, (other[0], {0: 3}), (unknown, {0: 1}), (topic[0], {0: 4, 9: 1}))
    run.send(several, 0, "several topics")
    for start in (-1, -2, -5, 2**63 - 1, -(2**63)):
        run.send(alter(group, (topic[0], {0: start})), 0, f"start {start}")
        run.send(show_offsets(group, (topic[0], [0])), 0, f"after {start}")
    run.send(show_offsets(group, everything=True), 0, "all")
    members = Sharers(run, group)
    members.join("m", topic[0], note="the offsets are there: assigned at once")
    run.send(alter(group, (topic[0], {0: 1})), 0, "with a member")
    run.send(alter(group, (unknown, {0: 1})), 0, "an unknown topic, with a member")
    run.send(alter(group), 0, "nothing, with a member")
    members.leave("m")
    run.send(alter(group, (topic[0], {0: 1})), 0, "the member left")
    run.send(describe_share(group), DESCRIBE, "the epoch stays")


@scenario_on("share groups")
def alter_no_share_offsets(run: Run) -> None:
    """Changes of nothing, of groups that do not exist."""
    _ready(run)
    topic, unknown = make_topic(run), run.topic("unknown")
    for number, request in enumerate((
        alter(run.group("g0")),
        alter(run.group("g1"), (unknown, {0: 1})),
        alter(run.group("g2"), (topic[0], {})),
        alter(run.group("g3"), (topic[0], {7: 1})),
        alter(run.group("g4"), (topic[0], {-1: 1})),
    )):  # fmt: skip
        run.send(request, 0, f"change {number}")
        run.send(describe_share(request.group_id), DESCRIBE, f"the group of change {number}")


@scenario_on("share groups")
def delete_share_offsets(run: Run) -> None:
    _ready(run)
    topic, other = make_topic(run, partitions=2), make_topic(run, "other")
    unknown, group = run.topic("unknown"), run.group()
    run.send(forget("", topic[0]), 0, "the empty group")
    run.send(forget(""), 0, "the empty group, nothing")
    run.send(forget(group, topic[0]), 0, "an unknown group")
    run.send(forget(group), 0, "nothing, of an unknown group")
    members = Sharers(run, group)
    members.enter("m", topic[0], count=2)
    run.send(forget(group, topic[0]), 0, "with a member")
    run.send(forget(group), 0, "nothing, with a member")
    members.leave("m")
    run.send(forget(group), 0, "nothing")
    run.send(forget(group, unknown), 0, "an unknown topic")
    run.send(forget(group, ""), 0, "an empty name")
    run.send(forget(group, other[0]), 0, "a topic without offsets")
    run.send(forget(group, other[0], topic[0], unknown), 0, "several topics")
    run.send(show_offsets(group, everything=True), 1, "nothing is left")
    run.send(forget(group, topic[0]), 0, "again")
    run.send(describe_share(group), DESCRIBE, "the group is there")
    run.send(alter(group, (topic[0], {1: 5})), 0, "offsets again")
    run.send(show_offsets(group, everything=True), 1, "offsets again")
    members.join("m", topic[0], note="one partition has an offset")
    members.until_assigned("m", 2)
    members.leave("m")
    run.send(show_offsets(group, everything=True), 0, "both have state")
    run.send(forget(group, topic[0]), 0, "deleted again")


@scenario_on("share groups")
def offsets_go_with_topics_of_share_groups(run: Run) -> None:
    _ready(run)
    topic, other = make_topic(run, partitions=2), make_topic(run, "other")
    group = run.group()
    run.setup(alter(group, (topic[0], {0: 1, 1: 2}), (other[0], {0: 3})), 0)
    run.send(show_offsets(group, everything=True), 0, "both topics")
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic[0])], timeout_ms=5000)
    run.setup(gone, 6)
    run.until(
        lambda answer: len(answer.groups[0].topics) == 1,
        show_offsets(group, everything=True), 0, "a topic was deleted",
    )  # fmt: skip
    run.send(forget(group, topic[0]), 0, "its offsets")
    run.send(alter(group, (topic[0], {0: 1})), 0, "an offset of it")
    make_topic(run, "t", partitions=2)
    run.send(show_offsets(group, everything=True), 0, "it is there again")
    run.send(show_offsets(group, (topic[0], [0])), 1, "its offset")
    run.send(forget(group, topic[0]), 0, "its offsets again")
    run.send(alter(group, (topic[0], {0: 1})), 0, "an offset of it again")
    run.send(show_offsets(group, everything=True), 0, "both topics again")
    run.send(beat(group, "m", -1), 1, "nobody leaves")
