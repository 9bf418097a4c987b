"""Offsets of streams groups: OffsetCommit, OffsetFetch, TxnOffsetCommit and OffsetDelete."""

from __future__ import annotations

from tests.golden.group_requests import commit, delete_offsets, fetch_offsets
from tests.golden.members import warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.streams_group_requests import Streamers, part, topology
from tests.golden.transaction_requests import (
    add_offsets,
    end,
    owned,
    txn_commit,
    warm_up_transactions,
)


@scenario_on("streams groups")
def streams_commits(run: Run) -> None:
    warm_up(run)
    topic, other = make_topic(run, partitions=4), make_topic(run, "other")
    group = Streamers(run, run.group(), topology(part("0", topic[0])))
    group.join("m", process_id="p")
    group.own("m")
    name = group.group
    for version in range(2, 11):
        run.send(commit(name, topic, (0, 1), version=version), version, "without member")
        request = commit(name, topic, (0, 2), version=version, member="m", generation=2)
        run.send(request, version, "the member")
    for member, epoch in (("m", 1), ("m", 0), ("m", 3), ("m", -1), ("n", 2), ("", 2)):
        request = commit(name, topic, (0, 3), version=9, member=member, generation=epoch)
        run.send(request, 9, f"member {member!r}, epoch {epoch}")
    run.send(commit(name, other, (0, 1), version=9, member="m", generation=2), 9, "another topic")
    group.join("n", process_id="q")
    group.settle("m", "n")
    for note, topic_, place in (
        ("its task", topic, 0),
        ("a task of another member", topic, 3),
        ("another topic", other, 0),
    ):
        for epoch in (2, 1):
            request = commit(name, topic_, (place, 4), version=9, member="m", generation=epoch)
            run.send(request, 9, f"epoch {epoch}, {note}")
    request = commit(name, topic, (3, 5), version=9, member="n", generation=2)
    run.send(request, 9, "an epoch before the task was assigned")
    for version in (1, 7, 8, 9, 10):
        run.send(fetch_offsets(name, (topic, [0, 3]), version=version), version, "offsets")
    for member, epoch in (("m", 3), ("m", 2), ("m", 4), ("x", 3), (None, -1), ("", -1)):
        request = fetch_offsets(name, (topic, [0]), version=9, member=member, epoch=epoch)
        run.send(request, 9, f"offsets of {member!r} with epoch {epoch}")
    run.send(delete_offsets(name, (topic[0], [0]), (other[0], [0])), 0, "offsets are deleted")
    group.leave("m")
    group.leave("n")
    run.send(commit(name, topic, (0, 9), version=9), 9, "without member, empty")
    run.send(commit(name, topic, (0, 9), version=2), 2, "without member, empty")
    request = commit(name, topic, (0, 9), version=9, member="m", generation=4)
    run.send(request, 9, "the member after its leave")
    run.send(delete_offsets(name, (topic[0], [0, 3])), 0, "offsets of an empty group are deleted")
    run.send(fetch_offsets(name, version=9, everything=True), 9, "what is left")


@scenario_on("streams groups")
def streams_commits_during_revocation(run: Run) -> None:
    """A member may commit for tasks that it has yet to give up."""
    warm_up(run)
    topic = make_topic(run, partitions=2)
    group = Streamers(run, run.group(), topology(part("0", topic[0])))
    group.join("a", process_id="p")
    group.own("a")
    group.join("b", process_id="q")
    group.beat("a", "has to give up a task", owns=({"0": [0, 1]}, {}, {}))
    for place in (0, 1):
        request = commit(group.group, topic, (place, 1), version=9, member="a", generation=2)
        run.send(request, 9, f"partition {place}")
    group.own("a", "has given it up")
    for place in (0, 1):
        for epoch in (2, 3):
            request = commit(group.group, topic, (place, 2), version=9, member="a",
                             generation=epoch)  # fmt: skip
            run.send(request, 9, f"partition {place}, epoch {epoch}, given up")


@scenario_on("streams groups")
def streams_transactions(run: Run) -> None:
    warm_up(run)
    warm_up_transactions(run)
    topic = make_topic(run, partitions=2)
    group = Streamers(run, run.group(), topology(part("0", topic[0])))
    group.join("m")
    name = run.group("id")
    producer = owned(run, name)
    run.send(add_offsets(name, producer, group.group), 3, "the group is added")
    for version in range(6):
        request = txn_commit(name, producer, group.group, topic, (0, 1), version=version)
        run.send(request, version, "without member")
    for member, epoch in (("m", 2), ("m", 1), ("m", 3), ("n", 2), ("m", -1)):
        request = txn_commit(
            name, producer, group.group, topic, (0, 5), version=3, member=member, generation=epoch
        )
        run.send(request, 3, f"member {member!r}, epoch {epoch}")
    run.send(end(name, producer), 3, "it ends")
    run.let_pass(300)
    run.send(fetch_offsets(group.group, (topic, [0]), version=9), 9, "offsets")
