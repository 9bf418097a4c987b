"""ShareGroupHeartbeat (KIP-932): faults, epochs, subscriptions, assignments, sessions.

The brokers here compute an assignment inside the heartbeat that needs it. The state of share
partitions is initialised after the answer, so the scenarios wait for the first assignment with
`until`. Which member loses a partition depends on hashes of ids in Kafka; only the numbers of
partitions are compared.
"""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import delete_groups, list_groups
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.share_group_requests import (
    BEAT,
    DESCRIBE,
    Sharers,
    beat,
    describe_share,
    records_of,
    show_offsets,
    size,
    warm_up_state,
)
from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState


def _ready(run: Run) -> None:
    warm_up(run)
    warm_up_state(run)


@scenario_on("share groups")
def share_heartbeat_faults(run: Run) -> None:
    _ready(run)
    topic, group = make_topic(run), run.group()
    cases: list[tuple[str, dict[str, Any]]] = [
        ("no group id", {"group": ""}),
        ("a blank group id", {"group": " "}),
        ("no member id", {"member": ""}),
        ("a blank member id", {"member": " "}),
        ("a member id of 36 characters", {"member": "x" * 36}),
        ("a member id of 37 characters", {"member": "x" * 37}),
        ("a member id of 36 wide characters", {"member": "\u00fc" * 36}),
        ("an empty rack", {"rack": ""}),
        ("a blank rack", {"rack": " "}),
        ("a rack", {"rack": "r"}),
        ("null topics", {"topics": None}),
        ("no topics", {"topics": []}),
        ("an empty topic name", {"topics": [""]}),
        ("a topic name that is illegal", {"topics": ["a b"]}),
        ("a topic that is unknown", {"topics": [run.topic("unknown")]}),
        ("an internal topic", {"topics": ["__consumer_offsets"]}),
        ("a topic twice", {"topics": [topic[0], topic[0]]}),
        ("epoch -1, unknown group", {"epoch": -1}),
        ("epoch -2", {"epoch": -2}),
        ("epoch -3", {"epoch": -3}),
        ("epoch 1, unknown group", {"epoch": 1}),
        ("epoch 1, null topics", {"epoch": 1, "topics": None}),
        ("epoch 1, no member id", {"epoch": 1, "member": ""}),
        ("epoch -1, no member id", {"epoch": -1, "member": ""}),
        ("epoch -1, no group id", {"epoch": -1, "group": ""}),
        ("epoch -2, no member id", {"epoch": -2, "member": ""}),
        ("epoch -1, an empty rack", {"epoch": -1, "rack": ""}),
        ("epoch 1, an empty rack", {"epoch": 1, "rack": ""}),
        ("no member id and no group id", {"member": "", "group": ""}),
        ("the largest epoch", {"epoch": 2**31 - 1}),
        ("the least epoch", {"epoch": -(2**31)}),
    ]
    for note, changes in cases:
        fields = {"epoch": 0, "member": "m", "group": f"{group} {note}", "topics": [topic[0]]}
        fields |= changes
        where, who, epoch = fields.pop("group"), fields.pop("member"), fields.pop("epoch")
        run.send(beat(where, who, epoch, **fields), BEAT, note)
    run.send(list_groups(types=["share"]), 5, "what was made by this")
    run.send(beat(group, "m", 0, [topic[0]]), 0, "the version of the early access")


@scenario_on("share groups")
def share_member_epochs(run: Run) -> None:
    _ready(run)
    topic = make_topic(run, partitions=2)
    group = Sharers(run, run.group())
    group.join("m", topic[0])
    group.until_assigned("m", 2)
    group.show()
    for epoch in (3, 2, 1, 4, 5, 2**31 - 1):
        group.beat("m", f"epoch {epoch}", epoch=epoch)
    group.beat("m", "the previous epoch, its topics", epoch=2, topics=[topic[0]])
    group.beat("m", "its topics", topics=[topic[0]])
    group.beat("m", "joins again", epoch=0, topics=[topic[0]])
    group.beat("m", "joins again without topics", epoch=0, topics=[])
    group.beat("m", "joins again with null topics", epoch=0)
    for member, epoch in (("n", 1), ("n", 3), ("n", -1), ("n", 2**31 - 1)):
        group.beat(member, f"an unknown member, epoch {epoch}", epoch=epoch)
    group.beat("m", "epoch -2", epoch=-2)
    group.leave("m")
    group.leave("m", "leaves twice")
    group.beat("m", "after its leave")
    group.show("empty")
    group.join("m", topic[0], note="comes back")
    group.beat("m")
    group.show("it is back")


@scenario_on("share groups")
def share_member_changes(run: Run) -> None:
    _ready(run)
    one, other = make_topic(run, "one", partitions=2), make_topic(run, "other", partitions=3)
    group = Sharers(run, run.group())
    group.join("m", one[0])
    group.until_assigned("m", 2)
    group.beat("m", "a rack", rack="r")
    group.show("with a rack")
    group.beat("m", "another rack", rack="s")
    group.beat("m", "the same rack", rack="s")
    group.beat("m", "no rack")
    group.beat("m", "joins again with a rack", epoch=0, topics=[one[0]], rack="t")
    group.beat("m", "another topic too", topics=[one[0], other[0]])
    group.until_assigned("m", 5)
    group.beat("m", "the other order", topics=[other[0], one[0]])
    group.beat("m", "a topic twice", topics=[other[0], one[0], one[0]])
    group.beat("m", "an unknown topic", topics=[other[0], one[0], run.topic("unknown")])
    group.beat("m", "one topic less", topics=[other[0]])
    group.beat("m", "no topics", topics=[])
    group.show("with no topics")
    group.beat("m", "no topics again", topics=[])
    group.beat("m", "null topics")
    group.beat("m", "topics again", topics=[one[0]])
    group.beat("m", "joins again with other topics", epoch=0, topics=[other[0]])
    group.show("with other topics")
    group.leave("m")
    group.show("left")


@scenario_on("share groups")
def share_records(run: Run) -> None:
    """The records of a group, in their order."""
    _ready(run)
    one, other = make_topic(run, "one", partitions=2), make_topic(run, "other")
    group = Sharers(run, run.group())
    group.join("m", one[0])
    group.until_assigned("m", 2)
    records_of(run, group.group, "the first assignment")
    group.beat("m", "a rack", rack="r")
    group.beat("m", "another topic", topics=[other[0]])
    group.until_assigned("m", 1)
    group.beat("m", "no topics", topics=[])
    group.leave("m")
    records_of(run, group.group, "left")
    run.send(delete_groups(group.group), 2, "deleted")
    records_of(run, group.group, "deleted")


@scenario_on("share groups")
def share_topics_come_and_go(run: Run) -> None:
    _ready(run)
    topic = make_topic(run, partitions=2)
    late = run.topic("late")
    group = Sharers(run, run.group())
    group.join("m", topic[0], late)
    group.until_assigned("m", 2)
    run.setup(_grown(topic[0], 4), 3)
    group.until_assigned("m", 4)
    group.beat("m", "grown")
    run.send(show_offsets(group.group, everything=True), 1, "later partitions begin at 0")
    group.show("grown")
    made = make_topic(run, "late")
    assert made[0] == late
    group.until_assigned("m", 5)
    group.show("a late topic")
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic[0])], timeout_ms=5000)
    run.setup(gone, 6)
    _until_size(group, "m", 1)
    group.show("a topic less")
    make_topic(run, "t", partitions=3)
    group.until_assigned("m", 4)
    group.show("the topic is there again")


def _grown(name: str, count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=5000)


def _until_size(group: Sharers, member: str, count: int) -> None:
    request = beat(group.group, member, group.epochs[member])

    def settled(answer: Any) -> bool:
        if answer.error_code == 0:
            request.member_epoch = answer.member_epoch
        return answer.assignment is not None and size(answer) == count

    answer = group.run.until(settled, request, BEAT, f"{member} until it has {count}")
    group.epochs[member] = answer.member_epoch


@scenario_on("share groups")
def share_sizes(run: Run) -> None:
    """The numbers of partitions of members, as they come and go."""
    _ready(run)
    for count in (1, 3, 4):
        topic = make_topic(run, f"t{count}", partitions=count)
        group = Sharers(run, run.group(f"g{count}"))
        group.enter("m0", topic[0], count=count)
        _sizes(group, f"{count} partitions, 1 member")
        for number in range(1, 9):
            group.enter(f"m{number}", topic[0])
            _sizes(group, f"{count} partitions, {number + 1} members")
        for number in range(8):
            run.setup(beat(group.group, f"m{number}", -1), BEAT)
            del group.epochs[f"m{number}"]
            _sizes(group, f"{count} partitions, {8 - number} members after leaving")


@scenario_on("share groups")
def share_sizes_of_two_topics(run: Run) -> None:
    """The same with members of different subscriptions."""
    _ready(run)
    one, other = make_topic(run, "one", partitions=2), make_topic(run, "other", partitions=3)
    group = Sharers(run, run.group())
    group.enter("a", one[0], other[0], count=5)
    _sizes(group, "one member")
    group.enter("b", one[0])
    _sizes(group, "two members, one of one topic")
    group.enter("c", other[0])
    _sizes(group, "three members, two of one topic")
    group.enter("d", one[0], other[0])
    _sizes(group, "four members")
    run.setup(beat(group.group, "a", group.epochs["a"], [one[0]]), BEAT)
    _sizes(group, "one changes its topics")
    run.setup(beat(group.group, "c", -1), BEAT)
    del group.epochs["c"]
    _sizes(group, "one leaves")


def _sizes(group: Sharers, note: str) -> None:
    """One step: how many partitions the members have, and how many members the partitions."""
    run = group.run
    for _ in range(2):
        for member, epoch in list(group.epochs.items()):
            answer = run.setup(beat(group.group, member, epoch), BEAT)
            assert answer.error_code == 0, answer
            group.epochs[member] = answer.member_epoch
    run.let_pass(100)
    (described,) = run.setup(describe_share(group.group), DESCRIBE).groups
    sizes = []
    sharing: dict[tuple[str, int], int] = {}
    for member in described.members:
        places = [
            (topic.topic_name, number)
            for topic in member.assignment.topic_partitions
            for number in topic.partitions
        ]
        sizes.append(len(places))
        for place in places:
            sharing[place] = sharing.get(place, 0) + 1
    # With more members than partitions Kafka may leave a place empty, as hashes of ids decide.
    is_exact = len(sizes) <= len(sharing)
    fact = {"sizes": sorted(sizes), "sharing": sorted(sharing.values())} if is_exact else {}
    run.keep(note, fact | {"epoch": described.group_epoch, "partitions": len(sharing)})


@scenario_on("small share groups")
def full_share_group(run: Run) -> None:
    _ready(run)
    topic = make_topic(run)
    group = Sharers(run, run.group())
    group.enter("a", topic[0])
    group.enter("b", topic[0])
    group.join("c", topic[0], note="a third member")
    group.beat("c", "an unknown member of a full group", epoch=1)
    group.beat("c", "an unknown member leaves a full group", epoch=-1)
    group.beat("a", "joins again", epoch=0, topics=[topic[0]])
    group.beat("b", "lives")
    group.leave("a")
    group.join("c", topic[0], note="there is room")


@scenario_on("impatient share groups")
def share_sessions_end(run: Run) -> None:
    _ready(run)
    topic = make_topic(run, partitions=2)
    group = Sharers(run, run.group())
    group.enter("a", topic[0], count=2)
    group.enter("b", topic[0])
    for _ in range(5):
        run.let_pass(1000)
        group.beat("b", "lives")
    group.beat("a", "after its session")
    group.show("one session ended")
    run.let_pass(4500)
    group.show("both ended")
    group.beat("b", "after its session")
    group.join("b", topic[0], note="comes back")


@scenario_on("share groups as shipped")
def share_assignment_comes_later(run: Run) -> None:
    """The interval between assignments is a second."""
    _ready(run)
    topic = make_topic(run, partitions=2)
    group = Sharers(run, run.group())
    group.join("a", topic[0])
    group.until_assigned("a", 2)
    group.join("b", topic[0], note="too early for an assignment")
    group.beat("b", "still too early")
    group.beat("a", "too early as well")
    group.show("an assignment is due")
    run.let_pass(1200)
    _sizes(group, "assigned")
