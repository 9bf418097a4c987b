"""ConsumerGroupHeartbeat (KIP-848): faults, epochs, reconciliation, static members.

The brokers here compute an assignment inside the heartbeat that needs it. For later changes of
Kafka (KIP-1263, metadata, regular expressions) the scenarios wait with `until`; only the settled
state is compared.
"""

from __future__ import annotations

from typing import Any

from tests.golden.group_requests import (
    beat,
    delete_groups,
    describe_consumers,
    first_beat,
    list_groups,
)
from tests.golden.members import Consumers, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on

V = 1


@scenario_on("groups")
def consumer_heartbeat_faults(run: Run) -> None:
    warm_up(run)
    topic, group = make_topic(run), run.group()
    for version in (0, 1):
        good = {"topics": [topic[0]], "rebalance_ms": 1_000, "owns": []}
        member = "m" if version else ""
        cases: list[tuple[str, dict[str, Any]]] = [
            ("no group id", {"group": ""}),
            ("a blank group id", {"group": " "}),
            ("an empty instance id", {"instance": ""}),
            ("a blank instance id", {"instance": " "}),
            ("an empty rack", {"rack": ""}),
            ("no rebalance timeout", {"rebalance_ms": -1}),
            ("owns something", {"owns": [(topic, [0])]}),
            ("owns null", {"owns": None}),
            ("no topics named", {"topics": None}),
            ("no topics", {"topics": []}),
            ("epoch -3", {"epoch": -3}),
            ("epoch -2 without instance id", {"epoch": -2, "member": "m"}),
            ("epoch -2, unknown group", {"epoch": -2, "member": "m", "instance": "i"}),
            ("epoch -1, unknown group", {"epoch": -1, "member": "m"}),
            ("epoch 1, unknown group", {"epoch": 1, "member": "m"}),
            ("epoch 1, no member id", {"epoch": 1, "member": ""}),
            ("epoch -1, no member id", {"epoch": -1, "member": ""}),
            ("no member id", {"member": ""}),
            ("an unknown assignor", {"assignor": "sticky"}),
            ("an empty assignor", {"assignor": ""}),
        ]
        for note, changes in cases:
            fields = {
                "epoch": 0,
                "member": member,
                "group": f"{group}{version} {note}",
                **good,
                **changes,
            }
            where, who, epoch = fields.pop("group"), fields.pop("member"), fields.pop("epoch")
            run.send(beat(where, who, epoch, **fields), version, note)
        run.send(list_groups(types=["consumer"]), 5, "what was made by this")


@scenario_on("groups")
def consumer_heartbeat_oddities(run: Run) -> None:
    """Unusual requests that Kafka accepts."""
    warm_up(run)
    topic = make_topic(run)
    for number, member in enumerate(("m", " ", "a b", "x" * 300, "ü")):
        request = first_beat(run.group(f"id {number}"), member, topic[0])
        run.send(request, 1, f"member id {number}")
    for rebalance in (0, -2, 1):
        request = first_beat(run.group(f"r{rebalance}"), "m", topic[0], rebalance_ms=rebalance)
        run.send(request, 1, f"rebalance timeout {rebalance}")
    for name in ("a b", "", "x" * 300, run.topic("unknown")):
        request = first_beat(run.group(f"t{name[:3]}"), "m", name)
        run.send(request, 1, f"topic {name[:10]!r}")
    twice = first_beat(run.group("twice"), "m", topic[0], topic[0])
    run.send(twice, 1, "a topic twice")
    regex = first_beat(run.group("regex"), "m", topics=None, regex="")
    run.send(regex, 1, "an empty regular expression and no names")
    run.send(first_beat(run.group("v0"), "chosen", topic[0]), 0, "version 0 with a member id")
    made = run.send(first_beat(run.group("made"), "", topic[0]), 0, "version 0 without one")
    run.send(beat(run.group("made"), made.member_id, made.member_epoch), 0, "with the one it got")
    run.send(describe_consumers(run.group("made")), 1, "described")


@scenario_on("groups")
def consumer_group_life(run: Run) -> None:
    """One member, then two, then one again: revoke, release, take over."""
    warm_up(run)
    topic = make_topic(run, partitions=4)
    name, group = topic[0], Consumers(run, run.group())
    group.join("m1", name)
    group.show("one member")
    group.beat("m1", "m1 says nothing new")
    group.beat("m1", "m1 owns them all", owns=[(topic, [0, 1, 2, 3])])
    group.join("m2", name)
    group.show("m1 has to give up two")
    group.beat("m2", "m2 waits")
    group.beat("m1", "m1 is told to revoke")
    group.show("reconciling")
    group.beat("m1", "m1 still owns all", owns=[(topic, [0, 1, 2, 3])])
    group.beat("m2", "m2 still waits")
    group.beat("m1", "m1 has revoked", owns=[(topic, [0, 1])])
    group.show("m2 may have them")
    group.beat("m2", "m2 gets them")
    group.beat("m2", "m2 owns them", owns=[(topic, [2, 3])])
    group.show("stable")
    group.beat("m1", "m1 asks for everything", topics=[name], owns=[(topic, [0, 1])],
               rebalance_ms=30_000)  # fmt: skip
    group.beat("m2", "m2 leaves", epoch=-1)
    group.show("one member is left")
    group.beat("m1", "m1 gets them back")
    group.show("stable again")
    group.beat("m2", "m2 after it left", epoch=2)
    group.beat("m1", "m1 leaves", epoch=-1)
    group.show("empty")
    group.beat("m1", "m1 leaves again", epoch=-1)
    group.join("m3", name, note="m3 joins the empty group")
    run.send(delete_groups(group.group), 3, "not while there is a member")
    group.beat("m3", "m3 leaves", epoch=-1)
    run.send(delete_groups(group.group), 3, "now it goes")
    group.show("deleted")


@scenario_on("groups")
def consumer_epochs(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    name, group = topic[0], Consumers(run, run.group())
    first = group.join("m1", name)
    epoch = first.member_epoch
    group.beat("nobody", "an unknown member", epoch=epoch)
    group.beat("nobody", "an unknown member leaves", epoch=-1)
    group.beat("nobody", "an unknown static member leaves", epoch=-2, instance="i")
    group.beat("m1", "a larger epoch", epoch=epoch + 1)
    group.beat("m1", "epoch 1 without partitions", epoch=1)
    group.beat("m1", "the epoch before, owning nothing", epoch=epoch - 1, owns=[])
    group.beat("m1", "the epoch before, owning some", epoch=epoch - 1, owns=[(topic, [0])])
    group.beat("m1", "the epoch before, owning more", epoch=epoch - 1, owns=[(topic, [0, 1, 7])])
    group.beat("m1", "its epoch", epoch=epoch)
    group.join("m1", name, note="it joins again with epoch 0")
    group.show("after that")
    group.beat("m1", "owning what it does not have", owns=[(topic, [7])])
    group.beat("m1", "owning of an unknown topic", owns=[(("?", bytes(range(1, 17))), [0])])
    group.beat("m1", "owning of the zero id", owns=[(("?", bytes(16)), [0])])
    group.beat("m1", "another rebalance timeout", rebalance_ms=5_000)
    group.beat("m1", "an instance id it did not have", instance="i")
    group.beat("m1", "a rack", rack="r1")
    group.show("with a rack")
    for epoch in (-2, -3):
        group.beat("m1", f"epoch {epoch}", epoch=epoch)


@scenario_on("groups")
def consumer_subscriptions(run: Run) -> None:
    warm_up(run)
    a, b = make_topic(run, "a", partitions=2), make_topic(run, "b")
    unknown = run.topic("unknown")
    group = Consumers(run, run.group())
    group.join("m1", a[0])
    group.beat("m1", "the same topics again", topics=[a[0]])
    group.beat("m1", "one more", topics=[a[0], b[0]])
    group.beat("m1", "in another order", topics=[b[0], a[0]])
    group.beat("m1", "only the other", topics=[b[0]])
    group.beat("m1", "it has revoked", owns=[(b, [0])])
    group.beat("m1", "and an unknown one", topics=[b[0], unknown])
    group.show("an unknown one is subscribed to")
    group.beat("m1", "none at all", topics=[])
    group.beat("m1", "it has revoked all", owns=[])
    group.show("nothing is subscribed to")
    group.join("m2", a[0], note="m2 wants another topic")
    group.beat("m1", "m1 wants it too", topics=[a[0]])
    group.beat("m2", "m2 revokes", owns=[(a, [0])])
    group.beat("m2", "m2 goes on")
    group.beat("m1", "m1 gets one")
    group.show("one each")


@scenario_on("groups")
def consumer_metadata_changes(run: Run) -> None:
    """New topics and partitions reach the group without a request, some time later."""
    from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
    from wire.schemas.delete_topics import DeleteTopicsRequest

    warm_up(run)
    first = make_topic(run, "first")
    group = Consumers(run, run.group())
    group.join("m1", first[0], run.topic("later"))
    later = make_topic(run, "later")
    group.until_assigned("m1")
    group.beat("m1", "it owns both", owns=[(first, [0]), (later, [0])])
    grown = CreatePartitionsTopic(name=first[0], count=3, assignments=None)
    run.setup(CreatePartitionsRequest(topics=[grown], timeout_ms=15_000), 3)
    group.until_assigned("m1")
    group.show("three partitions of the first")
    run.setup(DeleteTopicsRequest(topic_names=[later[0]], timeout_ms=15_000), 5)
    group.until_assigned("m1")
    group.beat("m1", "it has revoked the deleted one", owns=[(first, [0, 1, 2])])
    group.show("without the deleted topic")


@scenario_on("groups")
def consumer_assignors(run: Run) -> None:
    warm_up(run)
    one = make_topic(run, "one", partitions=5)[0]
    both = [make_topic(run, name, partitions=3)[0] for name in "ab"]
    # The uniform assignor's choice between several topics depends on their ids.
    for assignor, names in ((None, [one]), ("range", both), ("uniform", [one])):
        group = Consumers(run, run.group(str(assignor)))
        group.join("m1", *names, note=f"{assignor}: m1", assignor=assignor)
        group.show(f"{assignor}: m1")
        group.join("m2", *names, note=f"{assignor}: m2", assignor=assignor)
        group.beat("m1", f"{assignor}: what m1 keeps")
        group.show(f"{assignor}: both")
    group = Consumers(run, run.group("votes"))
    group.join("m1", one, assignor="range", note="one vote for range")
    group.join("m2", one, note="and one without an opinion")
    group.show("range")
    group.join("m3", one, assignor="uniform", note="one vote for uniform")
    group.join("m4", one, assignor="uniform", note="two votes for uniform")
    group.show("uniform")
    group.beat("m1", "an unknown assignor", assignor="sticky")
    group.beat("m1", "an empty assignor", assignor="")
    group.beat("m4", "changes its mind", assignor="range")
    group.beat("m3", "changes its mind", assignor="range")
    group.show("range again")


@scenario_on("one assignor")
def consumer_assignor_not_configured(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0], assignor="uniform", note="an assignor that is not configured")
    group.join("m1", topic[0], assignor="range", note="the one that is")
    group.join("m2", topic[0], note="no opinion")
    group.show()


@scenario_on("groups")
def consumer_changes_its_assignor(run: Run) -> None:
    """The group epoch rises when most members prefer another assignor."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0])
    for assignor in ("uniform", "uniform", "range", "range", "uniform"):
        group.beat("m1", f"m1 wants {assignor}", assignor=assignor)
    group.join("m2", topic[0], assignor="range", note="m2 wants range")
    group.show("one vote each")
    group.beat("m1", "m1 wants range", assignor="range")
    group.beat("m2", "m2 wants uniform", assignor="uniform")
    group.show("one vote each again")
    group.beat("m1", "m1 leaves", epoch=-1)
    group.show("one vote for uniform")


@scenario_on("range first")
def consumer_assignors_that_tie(run: Run) -> None:
    """With one vote each, range is the default."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    for first, second in (("range", "uniform"), ("uniform", "range")):
        group = Consumers(run, run.group(first))
        group.join("m1", topic[0], assignor=first, note=f"m1 wants {first}")
        group.join("m2", topic[0], assignor=second, note=f"m2 wants {second}")
        group.show("one vote each")


@scenario_on("groups")
def consumer_static_members(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    name, group = topic[0], Consumers(run, run.group())
    group.join("m1", name, instance="i1")
    group.join("m1 again", name, instance="i1", note="its instance is in use")
    group.beat("m1", "as it should be", instance="i1")
    group.beat("m1", "without its instance id")
    group.beat("other", "another member with its instance", epoch=group.epochs["m1"],
               instance="i1")  # fmt: skip
    group.beat("m1", "with an unknown instance", instance="i7")
    group.beat("m1", "leaves for a while without its instance id", epoch=-2)
    group.beat("other", "another leaves for it", epoch=-2, instance="i1")
    group.beat("m1", "leaves for a while", epoch=-2, instance="i1")
    group.show("away")
    group.beat("m1", "it goes on as if nothing were", instance="i1")
    group.join("m2", name, note="a dynamic member joins meanwhile")
    group.join("m3", name, instance="i1", note="it comes back as m3")
    group.show("back")
    group.beat("m1", "the old member id", epoch=2, instance="i1")
    group.beat("m3", "its epoch", instance="i1")
    group.beat("m3", "leaves for a while", epoch=-2, instance="i1")
    group.beat("m3", "leaves for good", epoch=-1, instance="i1")
    group.show("for good")
    group.join("m4", name, instance="i1", note="its instance is free")
    group.beat("m4", "leaves for good", epoch=-1)
    group.show("the dynamic member alone")


@scenario_on("groups")
def consumer_static_member_comes_back_changed(run: Run) -> None:
    warm_up(run)
    a, b = make_topic(run, "a", partitions=2), make_topic(run, "b")
    group = Consumers(run, run.group())
    group.join("m1", a[0], instance="i1")
    group.join("m2", a[0], instance="i2")
    group.beat("m1", "m1 has revoked", owns=[(a, [0])], instance="i1")
    group.beat("m2", "m2 goes on", instance="i2")
    group.show("before")
    group.beat("m2", "m2 leaves for a while", epoch=-2, instance="i2")
    group.join("m5", b[0], instance="i2", rack="r", note="it comes back with another topic")
    group.show("after")
    group.beat("m1", "m1", instance="i1")
    group.beat("m5", "m5", instance="i2")
    group.show("later")
    run.send(list_groups(types=["consumer"]), 5, "listed")


@scenario_on("groups")
def consumer_regular_expressions(run: Run) -> None:
    """RE2 expressions, resolved some time after the heartbeat that brings them."""
    warm_up(run)
    a = make_topic(run, "a", partitions=2)
    b = make_topic(run, "b")
    mine = run.topic("").replace(".", "\\.")
    group = run.group("faults")
    faults = ("[", "(", "a{2", "*", "(?<=a)b", "(?=a)", "a\\", "(a)\\1", "a**", "[z-a]", "\\q",
              "x{1001}")  # fmt: skip
    for number, regex in enumerate(faults):
        request = first_beat(f"{group}{number}", "m", topics=None, regex=regex)
        run.send(request, 1, f"regex {regex!r}")
    members = Consumers(run, run.group("right"))
    members.join("m1", topics=None, regex=f"{mine}[ab]", note="both topics")
    members.until_assigned("m1")
    members.show("by a regular expression")
    members.beat("m1", "a wrong one", regex="(")
    # Until it is resolved the member has no topics; a second one within 10 s has to wait.
    members.beat("m1", "one of the topics", regex=f"{mine}a")
    members.beat("m1", "it has revoked everything", owns=[])
    members.until_assigned("m1")
    members.beat("m1", "it owns them", owns=[(a, [0, 1])])
    members.show("one topic")
    members.beat("m1", "and a name beside it", topics=[run.topic("b")])
    members.show("both ways")
    members.beat("m1", "no regular expression any more", regex="")
    members.beat("m1", "it has revoked", owns=[(b, [0])])
    members.show("by name")
    whole = Consumers(run, run.group("whole"))
    whole.join("m1", topics=None, regex=f"{mine}", note="part of a name does not match")
    run.let_pass(1_500)
    whole.beat("m1", "nothing was found")
    whole.show("nothing")


@scenario_on("groups")
def consumer_regular_expression_finds_new_topics(run: Run) -> None:
    warm_up(run)
    group = Consumers(run, run.group())
    group.join("m1", topics=None, regex=f"{run.topic('')}.*", note="nothing yet")
    run.let_pass(1_500)
    group.beat("m1", "still nothing")
    make_topic(run, "new", partitions=2)
    group.until_assigned("m1")
    group.show()


@scenario_on("small groups")
def full_consumer_group(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0])
    group.join("m2", topic[0], instance="i2")
    group.join("m3", topic[0], note="a third")
    group.join("m4", topic[0], instance="i4", note="a third with an instance id")
    group.beat("m3", "a third goes on", epoch=3)
    group.beat("m2", "leaves for a while", epoch=-2, instance="i2")
    group.join("m3", topic[0], note="a third while one is away")
    group.join("m5", topic[0], instance="i2", note="it comes back")
    group.beat("m1", "leaves", epoch=-1)
    group.join("m3", topic[0], note="a third has room")
    group.show()


@scenario_on("impatient")
def consumer_sessions_end(run: Run) -> None:
    """A session is 3 s here. Its end is like a leave, even for static members."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0])
    group.join("m2", topic[0], instance="i2")
    group.beat("m1", "m1 has revoked", owns=[(topic, [0])])
    group.beat("m2", "m2", instance="i2")
    for _ in range(3):
        run.let_pass(1_500)
        group.beat("m1", "m1 goes on")
    group.show("m2 was silent")
    group.beat("m2", "m2 is too late", instance="i2")
    run.let_pass(4_500)
    group.show("m1 was silent too")
    group.beat("m1", "m1 is too late")
    group.join("m6", topic[0], instance="i2", note="the instance is free")
    group.beat("m6", "away for too long", epoch=-2, instance="i2")
    run.let_pass(4_500)
    group.show("away for too long")


@scenario_on("impatient")
def consumer_does_not_revoke(run: Run) -> None:
    """The rebalance timeout of the member ends its wait, even with heartbeats."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Consumers(run, run.group())
    group.join("m1", topic[0], rebalance_ms=1_800)
    group.join("m2", topic[0])
    group.beat("m1", "m1 is told to revoke")
    for _ in range(3):
        run.let_pass(800)
        group.beat("m2", "m2 goes on")
        group.beat("m1", "m1 keeps both", owns=[(topic, [0, 1])])
    group.show("m1 has been removed")


@scenario_on("as shipped")
def consumer_assignment_comes_later(run: Run) -> None:
    """With Kafka's own settings: computed after the heartbeats, at most once a second (KIP-1263).

    Which answer holds the assignment, and which epochs are skipped, depends on chance: only the
    final state is recorded.
    """
    warm_up(run)
    topic, group = make_topic(run, partitions=2), run.group()
    holds: dict[str, list[int]] = {"m1": [], "m2": []}
    epochs: dict[str, int] = {}
    for member in holds:
        epochs[member] = run.setup(first_beat(group, member, topic[0]), V).member_epoch

    def is_settled(answer: Any) -> bool:
        for member, partitions in holds.items():
            request = beat(group, member, epochs[member], owns=[(topic, partitions)])
            told = run.setup(request, V)
            epochs[member] = told.member_epoch
            if told.assignment is not None:
                rows = told.assignment.topic_partitions
                holds[member] = [partition for row in rows for partition in row.partitions]
        states = [row.group_state for row in answer.groups if row.group_id == group]
        return states == ["Stable"] and len(holds["m2"]) == 1

    run.until(is_settled, list_groups(types=["consumer"]), 5, "stable")
    run.keep("partitions of each", [len(partitions) for partitions in holds.values()])
