"""TxnOffsetCommit, and the visibility of its offsets before the transaction ends."""

from __future__ import annotations

from tests.golden.group_requests import commit, delete_groups, delete_offsets, fetch_offsets
from tests.golden.members import form
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on
from tests.golden.transaction_requests import (
    add_offsets,
    ended,
    owned,
    txn_commit,
    warm_up_transactions,
)

V = 5
METADATA_MAX = 4096
MISSING_ID = bytes(range(1, 17))


def _show(run: Run, group: str, note: str) -> None:
    for stable in (False, True):
        request = fetch_offsets(group, everything=True, require_stable=stable)
        run.send(request, 9, f"{note}{', stable ones' if stable else ''}")


@scenario_on("transactions")
def transactional_commit_versions(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run, partitions=3)
    unknown = (run.topic("unknown"), MISSING_ID)
    for v in range(7):
        group, name = run.group(f"g{v}"), run.group(f"v{v}")
        mine = pid, epoch = owned(run, name)
        first = txn_commit(name, mine, group, topic, (0, 5), version=v)
        run.send(first, v, "not added")
        run.setup(add_offsets(name, mine, group), 3)
        run.send(first, v, "added")
        two = txn_commit(name, mine, group, topic, (1, 6, "note"), (2, 7, None), version=v)
        run.send(two, v, "two at once")
        longer = (0, 2, "x" * (METADATA_MAX + 1))
        run.send(
            txn_commit(name, mine, group, topic, longer, (1, 2), version=v), v, "longer metadata"
        )
        wrong = txn_commit(name, mine, group, topic, (0, 1), (7, 9), version=v)
        run.send(wrong, v, "an unknown partition")
        wrong = txn_commit(name, mine, group, unknown, (0, 9), version=v)
        run.send(wrong, v, "an unknown topic")
        run.send(txn_commit(name, mine, group, topic, version=v), v, "no partitions")
        run.send(txn_commit(name, mine, "", topic, (0, 1), version=v), v, "the empty group")
        run.send(txn_commit("", mine, group, topic, (0, 1), version=v), v, "an empty id")
        nobody = txn_commit(run.group("nobody"), mine, run.group(f"h{v}"), topic, (0, 1), version=v)
        run.send(nobody, v, "an unknown id")
        later = txn_commit(name, (pid, epoch + 1), group, topic, (0, 1), version=v)
        run.send(later, v, "an epoch to come")
        other = txn_commit(name, (pid + 7000, 0), group, topic, (0, 1), version=v)
        run.send(other, v, "another producer")
        _show(run, group, "before the end")
        ended(run, name, mine, commit=v % 2 == 0)
        _show(run, group, "committed" if v % 2 == 0 else "aborted")
        run.send(txn_commit(name, mine, group, topic, (0, 8), version=v), v, "after the end")


@scenario_on("transactions")
def transactional_commit_as_somebody(run: Run) -> None:
    warm_up_transactions(run)
    topic = make_topic(run)
    somebody = (("", 0), ("", 5), ("m", -1), ("m", 0), ("m", 5), ("", -2))
    for v in (3, 5, 6):
        for number, (member, generation) in enumerate(somebody):
            for note in ("unknown", "simple"):
                name, group = (
                    run.group(f"v{v} n{number} {note}"),
                    run.group(f"{note} v{v} n{number}"),
                )
                if note == "simple":
                    run.setup(commit(group, topic, (0, 1)), 9)
                mine = owned(run, name)
                run.setup(add_offsets(name, mine, group), 3)
                request = txn_commit(
                    name, mine, group, topic, (0, 2), version=v, member=member,
                    generation=generation,
                )  # fmt: skip
                run.send(request, v, f"{note}: member {member!r}, generation {generation}")
        name, group = run.group(f"v{v} with members"), run.group(f"members v{v}")
        (a,) = form(run, group, "a")
        mine = owned(run, name)
        run.setup(add_offsets(name, mine, group), 3)
        tries = (
            ("nobody in particular", "", -1),
            ("the member", a.id, a.generation),
            ("another generation", a.id, a.generation + 1),
            ("a generation that has passed", a.id, 0),
            ("no generation", a.id, -1),
            ("another member", "m", a.generation),
        )
        for note, member, generation in tries:
            request = txn_commit(
                name, mine, group, topic, (0, 2), version=v, member=member, generation=generation
            )
            run.send(request, v, f"a group with a member: {note}")
        request = txn_commit(
            name, mine, group, topic, (0, 2), version=v, member=a.id,
            generation=a.generation, instance="i",
        )  # fmt: skip
        run.send(request, v, "a group with a member: an instance id that is none")
        ended(run, name, mine)
        a.leave(keep=False)


@scenario_on("transactions")
def undecided_offsets_and_others(run: Run) -> None:
    """Delete offsets, and commit without a transaction, while one is open."""
    warm_up_transactions(run)
    topic = make_topic(run, partitions=2)
    for is_committed in (True, False):
        note = "commit" if is_committed else "abort"
        group, name = run.group(f"g {note}"), run.group(note)
        run.setup(commit(group, topic, (0, 1), (1, 1)), 9)
        mine = owned(run, name)
        run.setup(txn_commit(name, mine, group, topic, (0, 7)), V)
        _show(run, group, f"{note}: open")
        run.send(commit(group, topic, (0, 3)), 9, f"{note}: a plain commit")
        run.send(delete_offsets(group, (topic[0], [1])), 0, f"{note}: delete other offsets")
        _show(run, group, f"{note}: still open")
        run.setup(txn_commit(name, mine, group, topic, (1, 8)), V)
        ended(run, name, mine, commit=is_committed)
        _show(run, group, f"{note}: ended")
        mine = owned(run, name)
        run.setup(txn_commit(name, mine, group, topic, (0, 9)), V)
        run.send(delete_offsets(group, (topic[0], [0])), 0, f"{note}: delete undecided offsets")
        _show(run, group, f"{note}: deleted")
        run.send(delete_groups(group), 2, f"{note}: delete the group")
        ended(run, name, mine, commit=is_committed)
        _show(run, group, f"{note}: ended after that")
