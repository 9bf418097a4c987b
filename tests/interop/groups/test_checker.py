"""The checker accepts correct histories, and finds every kind of error in others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.interop.groups.checker import check, losses, owners
from tests.interop.groups.history import Event, History, VerifiableConsumerJournal, in_order, parse

T0 = ("t", 0)


class Script:
    """A history of one partition, built line by line; the time grows by one with every line."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._commits = 0

    def happens(self, member: str, kind: str, **more: object) -> None:
        fields: dict[str, Any] = {"partitions": (T0,), **more}
        self.events.append(Event(float(len(self.events)), member, kind, **fields))

    def assigned(self, member: str, generation: int | None = None) -> None:
        self.happens(member, "assigned", generation=generation)

    def records(self, member: str, first: int, last: int) -> None:
        self.happens(member, "records", first=first, last=last)

    def commit(self, member: str, offset: int, answer: str = "committed") -> None:
        self._commits += 1
        self.happens(member, "committing", id=self._commits, offsets={T0: offset})
        if answer:
            self.happens(member, answer, id=self._commits)

    def broken(self, *, produced: int = 10, committed: int | None = None) -> list[str]:
        """Return the checker's result; the coordinator keeps `committed`, by default the last
        commit.
        """
        accepted = {event.id for event in self.events if event.kind == "committed"}
        last = [e.offsets[T0] for e in self.events if e.kind == "committing" and e.id in accepted]
        found = max(last, default=0) if committed is None else committed
        return check(History(in_order(self.events), {T0: produced}, {T0: found}))


@pytest.fixture
def script() -> Script:
    return Script()


def test_an_orderly_handover_is_accepted(script: Script) -> None:
    script.assigned("a", 1)
    script.records("a", 0, 3)
    script.commit("a", 4)
    script.records("a", 4, 4)
    script.happens("a", "revoked")
    script.assigned("b", 2)
    script.records("b", 4, 9)  # again 4, which was consumed but not committed
    script.commit("b", 10)
    script.happens("b", "closed")
    assert script.broken() == []


def test_a_lost_record_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 7)
    script.commit("a", 8)
    assert script.broken() == ["nobody saw 8, 9 of t-0"]


def test_an_invented_record_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 9)
    assert script.broken(produced=9) == ["nobody produced 9 of t-0"]


def test_a_gap_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 3)
    script.records("a", 5, 9)
    assert script.broken() == ["nobody saw 4 of t-0", "a owns t-0 from 0: 5 follows 3"]


def test_a_repetition_without_a_rebalance_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 6)
    script.records("a", 5, 9)
    assert script.broken() == ["a owns t-0 from 0: 5 follows 6"]


def test_two_owners_are_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 9)
    script.assigned("b")
    script.happens("a", "revoked")
    assert script.broken() == ["two owners: a owns t-0 from 0 to 3; b owns t-0 from 2"]


def test_two_owners_to_the_end_are_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 9)
    script.assigned("b")
    assert script.broken() == ["two owners: a owns t-0 from 0 to the end; b owns t-0 from 2"]


def test_two_owners_in_one_generation_are_found(script: Script) -> None:
    script.happens("other", "assigned", partitions=(("other", 0),))
    script.assigned("a", 4)
    script.records("a", 0, 9)
    script.happens("a", "killed")
    script.assigned("b", 4)
    (found,) = script.broken()
    assert found.startswith("two owners in one generation: ")


def test_a_static_member_continues_in_its_generation(script: Script) -> None:
    script.happens("other", "assigned", partitions=(("other", 0),))
    script.assigned("a", 4)
    script.records("a", 0, 9)
    script.happens("a", "killed")
    script.assigned("b", 4)
    history = History(in_order(script.events), {T0: 10}, {T0: 0})
    assert check(replace(history, instances={"a": "x", "b": "y"})) != []
    assert check(replace(history, instances={"a": "x", "b": "x"})) == []


@pytest.mark.parametrize("end", ["lost", "fenced", "killed"])
def test_an_expelled_member_may_believe_in_its_tenure_for_a_while(end: str, script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 3)
    script.assigned("b")
    script.records("b", 0, 9)
    script.commit("a", 4, "refused")
    script.happens("a", end)
    script.commit("b", 10)
    assert script.broken() == []
    history = History(in_order(script.events), {}, {})
    assert losses(history) == (end == "lost")
    assert owners(history, 3.5) == {T0: ["a", "b"]}
    assert owners(history, 7) == {T0: ["b"]}


def test_a_commit_of_an_expelled_member_must_not_be_accepted(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 3)
    script.assigned("b")
    script.commit("a", 4)
    script.happens("a", "lost")
    script.records("b", 4, 9)
    (found,) = script.broken()
    assert found.startswith("accepted though another had it: a commits 4 of t-0 at 3; b owns t-0")


def test_a_frozen_member_may_learn_late_of_a_lost_tenure(script: Script) -> None:
    script.assigned("a", 6)
    script.records("a", 0, 3)
    script.assigned("b", 2)
    script.records("b", 0, 3)
    script.commit("b", 4, "refused")
    script.happens("b", "lost")
    script.records("a", 4, 9)
    assert script.broken() == []


def test_a_frozen_member_must_learn_of_its_loss(script: Script) -> None:
    script.assigned("a", 6)
    script.records("a", 0, 9)
    script.assigned("b", 2)
    script.records("b", 0, 9)
    script.commit("b", 10)
    first, second = script.broken()
    assert first.startswith("two owners: b owns t-0 in generation 2 from 2 to the end; a owns t-0")
    assert second.startswith("accepted though another had it: b commits 10 of t-0")


def test_an_empty_group_may_restart_its_generations(script: Script) -> None:
    for member, generation in (("a", 1), ("b", 2), ("c", 2)):
        script.assigned(member, generation)
        script.happens(member, "revoked")
    script.assigned("d", 1)
    script.records("d", 0, 9)
    assert script.broken() == []


def test_a_lost_tenure_may_belong_to_the_former_group(script: Script) -> None:
    script.assigned("a", 2)
    script.assigned("b", 1)
    script.records("b", 0, 9)
    script.commit("b", 10)
    script.happens("a", "lost")
    assert script.broken() == []


def test_a_tenure_from_before_the_last_commit_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 5)
    script.commit("a", 6)
    script.happens("a", "revoked")
    script.assigned("b")
    script.records("b", 3, 9)
    assert script.broken() == ["b owns t-0 from 5 starts at 3, committed was 6"]


def test_a_tenure_from_after_the_last_commit_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 8)
    script.commit("a", 6)
    script.happens("a", "revoked")
    script.assigned("b")
    script.records("b", 9, 9)
    assert script.broken() == ["b owns t-0 from 5 starts at 9, committed was 6"]


def test_the_commit_of_a_killed_member_may_or_may_not_count(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 5)
    script.commit("a", 6, "")
    script.happens("a", "killed")
    script.assigned("b")
    before = len(script.events)
    for first in (0, 6):
        del script.events[before:]
        script.records("b", first, 9)
        assert script.broken(committed=6) == []
    del script.events[before:]
    script.records("b", 3, 9)
    assert script.broken() == ["b owns t-0 from 4 starts at 3, committed was 0 or 6"]


def test_a_refused_commit_has_no_effect(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 5)
    script.commit("a", 6, "refused")
    script.happens("a", "lost")
    script.assigned("b")
    script.records("b", 6, 9)
    assert script.broken() == ["b owns t-0 from 5 starts at 6, committed was 0"]


def test_a_refusal_while_the_broker_was_killed_may_follow_an_effect(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 5)
    script.commit("a", 6, "")
    script.happens("broker", "broker killed")
    script.happens("a", "refused", id=1)
    script.happens("a", "lost")
    script.assigned("b")
    script.records("b", 6, 9)
    assert script.broken(committed=6) == []


def test_a_commit_of_unconsumed_records_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 3)
    script.commit("a", 10)
    script.records("a", 4, 9)
    assert script.broken() == [
        "a commits 10 of t-0 at 2, but 4, 5, 6, 7, 8 and 1 more nobody had seen"
    ]


def test_a_forgotten_commit_is_found(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 9)
    script.commit("a", 10)
    assert script.broken(committed=4) == ["committed of t-0 is 4, was 10"]


def test_records_of_a_partition_without_ownership_are_found(script: Script) -> None:
    script.assigned("a")
    script.happens("a", "revoked")
    script.records("a", 0, 9)
    assert script.broken() == ["a sees t-0:0..9 at 2 and does not own it"]


def test_an_owned_partition_cannot_be_assigned_again(script: Script) -> None:
    script.assigned("a")
    script.records("a", 0, 9)
    script.assigned("a")
    assert script.broken() == ["a owns t-0 from 0, and again from 2"]


def test_a_line_of_a_journal() -> None:
    line = '{"at": 1.5, "event": "committing", "id": 3, "offsets": [["t", 0, 10]]}'
    assert parse("a", line) == Event(1.5, "a", "committing", id=3, offsets={T0: 10})
    line = '{"at": 2, "event": "records", "partition": ["t", 0], "first": 4, "last": 5}'
    assert parse("a", line) == Event(2, "a", "records", (T0,), first=4, last=5)


def test_the_output_of_kafkas_verifiable_consumer() -> None:
    journal = VerifiableConsumerJournal("j", wall_minus_monotonic_ms=1000)
    lines = [
        '{"timestamp":1001,"name":"startup_complete"}',
        '{"timestamp":1002,"name":"partitions_assigned","partitions":'
        '[{"topic":"t","partition":0}]}',
        '{"timestamp":1003,"name":"records_consumed","count":2,"partitions":'
        '[{"topic":"t","partition":0,"count":2,"minOffset":3,"maxOffset":4}]}',
        '{"timestamp":1004,"name":"offsets_committed","offsets":'
        '[{"topic":"t","partition":0,"offset":5}],"success":true}',
        "not of the tool",
        '{"timestamp":1005,"name":"shutdown_complete"}',
    ]
    assert [event for line in lines for event in journal.parse(line)] == [
        Event(2, "j", "assigned", (T0,)),
        Event(3, "j", "records", (T0,), first=3, last=4),
        Event(3, "j", "committing", id=1, offsets={T0: 5}),
        Event(4, "j", "committed", id=1),
        Event(5, "j", "closed"),
    ]
