"""OffsetCommit, OffsetFetch and OffsetDelete, for groups without members and with classic ones."""

from __future__ import annotations

from tests.golden.group_requests import (
    commit,
    delete_groups,
    delete_offsets,
    fetch_offsets,
    fetched_group,
    subscription,
)
from tests.golden.members import Member, form, gather, show, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from wire.schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from wire.schemas.delete_topics import DeleteTopicsRequest
from wire.schemas.offset_commit import OffsetCommitRequest
from wire.schemas.offset_fetch import OffsetFetchRequest

COMMITS = range(2, 11)
FETCHES = range(1, 11)
BY_ID = 10
V = 9
MISSING_ID = bytes(range(1, 17))
METADATA_MAX = 4096


def _show(run: Run, group: str, note: str = "stored") -> None:
    """One step: all stored offsets, by name."""
    run.send(fetch_offsets(group, everything=True), V, note)


@scenario_on("groups")
def commit_versions(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=3)
    unknown = (run.topic("unknown"), MISSING_ID)
    for v in COMMITS:
        group = run.group(f"v{v}")
        run.send(commit(group, topic, (0, 10, "note"), (1, 11, None), version=v), v, "two at once")
        run.send(commit(group, topic, (0, 5), version=v), v, "backwards")
        run.send(commit(group, topic, (2, -1), version=v), v, "offset -1")
        run.send(commit(group, topic, (2, 7), leader_epoch=3, version=v), v, "with an epoch")
        largest = commit(group, topic, (0, 1, "x" * METADATA_MAX), version=v)
        run.send(largest, v, "the longest metadata")
        too_long = (0, 2, "x" * (METADATA_MAX + 1))
        run.send(commit(group, topic, too_long, (1, 2), version=v), v, "longer metadata in one")
        run.send(commit(group, topic, (1, 9), (7, 9), (-1, 9), version=v), v, "unknown partitions")
        run.send(commit(group, unknown, (0, 9), version=v), v, "unknown topic")
        run.send(commit(group, topic, (1, 1), (1, 2), version=v), v, "one partition twice")
        run.send(commit(group, topic, version=v), v, "no partitions")
        run.send(OffsetCommitRequest(group_id=group), v, "no topics")
        run.send(commit("", topic, (0, 1), version=v), v, "the empty group")
        _show(run, group)
    for version in (2, 9):
        nameless = commit(run.group(), "", (0, 1), version=version)
        run.send(nameless, version, "an empty topic name")
        illegal = commit(run.group(), "a b", (0, 1), version=version)
        run.send(illegal, version, "an illegal topic name")
    run.send(commit(run.group(), ("", bytes(16)), (0, 1), version=10), 10, "the zero topic id")
    run.send(commit(run.group(), "__consumer_offsets", (0, 1)), V, "an internal topic")


@scenario_on("groups")
def commit_as_somebody(run: Run) -> None:
    """Members and others commit to a group that is unknown, simple, or empty."""
    warm_up(run)
    topic = make_topic(run)
    somebody = (("", 0), ("", 5), ("m", -1), ("m", 0), ("m", 5), ("", -2))
    for version in (2, 6, 7, 8, 9, 10):
        for number, (member, generation) in enumerate(somebody):
            for note in ("unknown", "simple"):
                group = run.group(f"{note} {version} {number}")
                if note == "simple":
                    run.setup(commit(group, topic, (0, 1)), V)
                request = commit(
                    group, topic, (0, 2), version=version, member=member, generation=generation
                )
                run.send(request, version, f"{note}: member {member!r}, generation {generation}")
    for version in (7, 9):
        for note, member, generation in (("only", "", -1), ("and generation", "", 3)):
            request = commit(
                run.group("i"), topic, (0, 2), version=version, member=member,
                generation=generation, instance="i",
            )  # fmt: skip
            run.send(request, version, f"instance id {note}")
    group = run.group("empty")
    (a,) = form(run, group, "a")
    a.leave(keep=False)
    for version in (2, 9):
        for member, generation in (("", -1), (a.id, 1), (a.id, 2), ("m", -1), ("", 2)):
            who = "its last member" if member == a.id else repr(member)
            request = commit(
                group, topic, (0, 2), version=version, member=member, generation=generation
            )
            run.send(request, version, f"empty: member {who}, generation {generation}")


@scenario_on("groups")
def commit_in_each_state(run: Run) -> None:
    warm_up(run)
    group, topic = run.group(), make_topic(run)
    a, b = form(run, group, "a", "b")

    def all_ways(state: str) -> None:
        for version in (2, 8, 9, 10):
            for note, member, generation in (
                ("its own", b.id, b.generation),
                ("the generation before", b.id, b.generation - 1),
                ("the next generation", b.id, b.generation + 1),
                ("no generation", b.id, -1),
                ("an unknown member", "nobody", b.generation),
                ("no member", "", b.generation),
                ("neither", "", -1),
            ):
                request = commit(
                    group, topic, (0, 3), version=version, member=member, generation=generation
                )
                run.send(request, version, f"{state}: {note}")

    all_ways("stable")
    a.begin_join("the leader joins")
    all_ways("preparing")
    b.begin_join("the follower comes")
    a.finish_join()
    b.finish_join()
    all_ways("completing")
    b.begin_sync("the follower waits")
    a.sync("the leader's sync", {a.id: b"A", b.id: b"B"})
    b.finish()
    all_ways("stable again")
    _show(run, group)


@scenario_on("groups")
def fetch_versions_of_offsets(run: Run) -> None:
    warm_up(run)
    first, second = make_topic(run, "a", partitions=3), make_topic(run, "b")
    unknown = (run.topic("unknown"), MISSING_ID)
    group, other = run.group("g"), run.group("other")
    run.setup(commit(group, first, (0, 10, "note"), (1, 11, None), leader_epoch=4), V)
    run.setup(commit(group, second, (0, 20)), V)
    for v in FETCHES:
        run.send(fetch_offsets(group, (first, [0, 1]), version=v), v, "stored ones")
        run.send(fetch_offsets(group, (first, [2, 9]), (second, [0]), version=v), v, "some are not")
        run.send(fetch_offsets(group, (unknown, [0]), version=v), v, "an unknown topic")
        run.send(fetch_offsets(group, (first, []), version=v), v, "no partitions")
        run.send(fetch_offsets(group, (first, [0, 0]), version=v), v, "one partition twice")
        run.send(fetch_offsets(group, version=v), v, "no topics")
        run.send(fetch_offsets(other, (first, [0]), version=v), v, "an unknown group")
        run.send(fetch_offsets("", (unknown, [0]), version=v), v, "the empty group")
        if v >= 2:
            run.send(fetch_offsets(group, version=v, everything=True), v, "everything")
            run.send(fetch_offsets(other, version=v, everything=True), v, "everything of nobody")
        if v >= 7:
            stable = fetch_offsets(group, (first, [0]), version=v, require_stable=True)
            run.send(stable, v, "stable ones")
            every = fetch_offsets(group, version=v, everything=True, require_stable=True)
            run.send(every, v, "everything stable")


@scenario_on("groups")
def fetch_offsets_of_several_groups(run: Run) -> None:
    warm_up(run)
    topic = make_topic(run, partitions=2)
    groups = [run.group(name) for name in "abc"]
    for number, group in enumerate(groups):
        run.setup(commit(group, topic, (0, number)), V)
    for v in (8, 9, 10):
        one = [fetched_group(name, (topic, [0, 1]), version=v) for name in groups]
        run.send(OffsetFetchRequest(groups=one), v, "three groups")
        mixed = [
            fetched_group(groups[0], version=v, everything=True),
            fetched_group(groups[1], version=v),
            fetched_group(run.group("unknown"), (topic, [0]), version=v),
        ]
        run.send(OffsetFetchRequest(groups=mixed), v, "everything, nothing, unknown")
        run.send(OffsetFetchRequest(groups=[one[0], one[0]]), v, "one group twice")
        run.send(OffsetFetchRequest(groups=[]), v, "no groups")
    run.send(
        OffsetFetchRequest(groups=[fetched_group(groups[0], ("", [0]), version=10)]), 10,
        "the zero topic id",
    )  # fmt: skip


@scenario_on("groups")
def fetch_offsets_as_somebody(run: Run) -> None:
    """Member ids and epochs are checked only in groups of the consumer protocol."""
    warm_up(run)
    topic = make_topic(run)
    group = run.group("classic")
    (a,) = form(run, group, "a")
    for version in (9, 10):
        for member, epoch in ((None, -1), ("", -1), (a.id, 1), (a.id, 7), ("nobody", 1), (None, 4)):
            request = fetch_offsets(
                group, (topic, [0]), version=version, member=member, epoch=epoch
            )
            who = "its member" if member == a.id else repr(member)
            run.send(request, version, f"{who}, epoch {epoch}")
        unknown = fetch_offsets(
            run.group("no"), (topic, [0]), version=version, member="nobody", epoch=1
        )
        run.send(unknown, version, "somebody of an unknown group")


@scenario_on("groups")
def delete_stored_offsets(run: Run) -> None:
    warm_up(run)
    topic, other = make_topic(run, "a", partitions=3), make_topic(run, "b")
    name, group = topic[0], run.group("simple")
    run.send(delete_offsets("", (name, [0])), 0, "no group id")
    run.send(delete_offsets(run.group("unknown"), (name, [0])), 0, "unknown group")
    run.send(delete_offsets(run.group("unknown")), 0, "unknown group, no topics")
    run.setup(commit(group, topic, (0, 1), (1, 2), (2, 3)), V)
    run.setup(commit(group, other, (0, 4)), V)
    run.send(delete_offsets(group, (name, [0])), 0, "one")
    _show(run, group)
    run.send(delete_offsets(group, (name, [0])), 0, "again")
    run.send(delete_offsets(group, (name, [1, 9, -1])), 0, "one and unknown partitions")
    run.send(delete_offsets(group, (run.topic("unknown"), [0])), 0, "unknown topic")
    run.send(delete_offsets(group, (name, [])), 0, "no partitions")
    run.send(delete_offsets(group), 0, "no topics")
    run.send(delete_offsets(group, (name, [2]), (other[0], [0])), 0, "the rest")
    _show(run, group)
    show(run, group, note="the group is still there")


@scenario_on("groups")
def delete_offsets_of_members(run: Run) -> None:
    """Offsets of subscribed topics stay; a group of another protocol type keeps all."""
    warm_up(run)
    read, left = make_topic(run, "read"), make_topic(run, "left")
    group = run.group("consumers")
    (a,) = gather([Member(run, group, "a", protocols=[("range", subscription(read[0]))])])
    for topic in (read, left):
        run.setup(commit(group, topic, (0, 1), member=a.id, generation=1), V)
    both = delete_offsets(group, (read[0], [0]), (left[0], [0]))
    run.send(both, 0, "stable: one topic is subscribed to")
    _show(run, group)
    run.setup(commit(group, left, (0, 1), member=a.id, generation=1), V)
    b = Member(run, group, "b", protocols=[("range", subscription(left[0], version=3))])
    b.get_id()
    b.begin_join("one more joins")
    run.send(both, 0, "preparing: the new one subscribes to the other")
    a.begin_join("the leader comes")
    a.finish_join()
    b.finish_join()
    run.send(both, 0, "completing")
    for member in (a, b):
        member.leave(keep=False)
    run.send(both, 0, "empty")
    _show(run, group)
    group = run.group("connect")
    (c,) = form(run, group, "c", protocols=[("default", b"?")], kind="connect")
    run.setup(commit(group, read, (0, 1), member=c.id, generation=1), V)
    run.send(delete_offsets(group, (read[0], [0])), 0, "another protocol type, stable")
    c.leave(keep=False)
    run.send(delete_offsets(group, (read[0], [0])), 0, "another protocol type, empty")
    group = run.group("unreadable")
    (d,) = form(run, group, "d", protocols=[("range", b"?")])
    run.setup(commit(group, read, (0, 1), member=d.id, generation=1), V)
    run.send(delete_offsets(group, (read[0], [0])), 0, "a subscription that cannot be read")


@scenario_on("groups")
def offsets_go_with_their_group(run: Run) -> None:
    warm_up(run)
    topic, group = make_topic(run), run.group()
    run.setup(commit(group, topic, (0, 1)), V)
    show(run, group, note="a simple group")
    run.send(delete_groups(group), 3, "deleted")
    _show(run, group)
    run.send(commit(group, topic, (0, 2)), V, "and made anew")
    _show(run, group)


@scenario_on("groups")
def offsets_go_with_their_topic(run: Run) -> None:
    """The coordinator removes them some time after the topic; later partitions have none."""
    warm_up(run)
    gone, kept = make_topic(run, "gone"), make_topic(run, "kept")
    group = run.group()
    for topic in (gone, kept):
        run.setup(commit(group, topic, (0, 1)), V)
    run.setup(DeleteTopicsRequest(topic_names=[gone[0]], timeout_ms=15_000), 5)
    run.until(
        lambda answer: len(answer.groups[0].topics) == 1,
        fetch_offsets(group, everything=True), V, "the deleted topic's are gone",
    )  # fmt: skip
    run.send(fetch_offsets(group, (gone[0], [0])), V, "by name")
    run.send(commit(group, gone, (0, 2)), V, "no commit to it any more")
    run.send(commit(group, gone, (0, 2), version=10), 10, "nor by its id")
    again = make_topic(run, "gone")
    run.send(fetch_offsets(group, (again[0], [0])), V, "a new topic of that name")
    grown = CreatePartitionsTopic(name=kept[0], count=2, assignments=None)
    run.setup(CreatePartitionsRequest(topics=[grown], timeout_ms=15_000), 3)
    run.send(commit(group, kept, (1, 5)), V, "a partition that was added")
    run.send(fetch_offsets(group, (kept[0], [0, 1])), V, "both partitions")


@scenario_on("forgetful")
def offsets_expire(run: Run) -> None:
    """With a retention time from the client, in versions 2 to 4; checked twice a second here."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    for version in (2, 3, 4):
        group = run.group(f"v{version}")
        short = commit(group, topic, (0, 1), version=version, retention_time_ms=600)
        run.setup(commit(group, topic, (1, 2)), V)
        run.send(short, version, "to be kept for 0.6 s")
        run.send(fetch_offsets(group, (topic[0], [0])), V, "still there")
        run.let_pass(1_800)
        run.send(fetch_offsets(group, (topic[0], [0, 1])), V, "only the other")
    group = run.group("alone")
    run.setup(commit(group, topic, (0, 1), version=2, retention_time_ms=600), 2)
    run.let_pass(1_800)
    show(run, group, note="a group goes with its last offset")
    (a,) = form(run, run.group("members"), "a", protocols=[("range", subscription(topic[0]))])
    run.let_pass(800)
    show(run, a.group, note="a group with a member stays")
    a.leave(keep=False)
    run.let_pass(1_200)
    show(run, a.group, note="an empty one without offsets goes")
