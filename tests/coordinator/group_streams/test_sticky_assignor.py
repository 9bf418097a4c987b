"""The sticky assignor: complete, even, sticky; standby copies on other processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.coordinator.group.streams.sticky_assignor import (
    MemberSpec,
    SubtopologySpec,
    assign,
    check_configured,
)
from embedlog.coordinator.group.streams.tasks import Numbers, Tasks
from embedlog.errors import ConfigError

Members = dict[str, MemberSpec]
Parts = dict[str, SubtopologySpec]
PROCESSES = st.sampled_from("pqr")


def each(numbers: Numbers) -> set[tuple[str, int]]:
    return {(name, number) for name, some in numbers.items() for number in some}


def of(assigned: Mapping[str, Tasks], members: Members) -> Members:
    """Return the members with these tasks as their present ones."""
    return {
        name: MemberSpec(members[name].process_id, tasks.active, tasks.standby)
        for name, tasks in assigned.items()
    }


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    counts = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    return {str(n): SubtopologySpec(c, draw(st.booleans())) for n, c in enumerate(counts)}


@st.composite
def members(draw: st.DrawFn, of_parts: Parts) -> Members:
    """Members with random tasks; a task may not exist, or belong to several members."""
    tasks = [(name, n) for name, part in of_parts.items() for n in range(part.task_count + 1)]
    some = st.lists(st.sampled_from(tasks), max_size=6, unique=True)

    def numbers() -> Numbers:
        found: dict[str, set[int]] = {}
        for name, number in draw(some):
            found.setdefault(name, set()).add(number)
        return {name: frozenset(those) for name, those in found.items()}

    return {
        f"m{number}": MemberSpec(
            draw(PROCESSES), numbers(), numbers(), dict.fromkeys(draw(some), draw(st.integers(0)))
        )
        for number in range(draw(st.integers(1, 6)))
    }


@given(st.data(), parts(), st.integers(0, 3))
def test_every_task_has_one_member_and_copies_on_other_processes(
    data: st.DataObject, topology: Parts, standby_count: int
) -> None:
    group = data.draw(members(topology))
    found = assign(group, topology, standby_count=standby_count)
    assert found.keys() == group.keys()
    active = Counter(task for tasks in found.values() for task in each(tasks.active))
    wanted = {(name, n) for name, part in topology.items() for n in range(part.task_count)}
    assert active == Counter(wanted)
    copies = Counter(task for tasks in found.values() for task in each(tasks.standby))
    process_count = len({spec.process_id for spec in group.values()})
    for name, number in wanted:
        most = min(standby_count, process_count - 1) if topology[name].is_stateful else 0
        assert copies.pop((name, number), 0) == most
    assert not copies
    by_process = Counter(
        (group[member].process_id, task)
        for member, tasks in found.items()
        for task in [*each(tasks.active), *each(tasks.standby)]
    )
    assert set(by_process.values()) <= {1}
    assert all(not tasks.warmup for tasks in found.values())


@given(parts(), st.lists(PROCESSES, min_size=1, max_size=6), st.integers(0, 2))
def test_a_finished_assignment_stays_if_nothing_changes(
    topology: Parts, processes: list[str], standby_count: int
) -> None:
    group = {f"m{n}": MemberSpec(process) for n, process in enumerate(processes)}
    found = assign(group, topology)
    again = assign(of(found, group), topology)
    assert found == again


@given(parts(), st.lists(PROCESSES, min_size=1, max_size=6))
def test_the_numbers_of_tasks_are_even(topology: Parts, processes: list[str]) -> None:
    group = {f"m{n}": MemberSpec(f"{n}") for n, _ in enumerate(processes)}
    counts = [len(each(tasks.active)) for tasks in assign(group, topology).values()]
    assert max(counts) - min(counts) <= 1


@given(parts(), st.integers(1, 5))
def test_a_new_member_takes_only_its_share(topology: Parts, count: int) -> None:
    group = {f"m{n}": MemberSpec(f"p{n}") for n in range(count)}
    before = assign(group, topology)
    after = assign({**of(before, group), "new": MemberSpec("new")}, topology)
    moved = sum(len(each(before[name].active) - each(after[name].active)) for name in before)
    assert moved == len(each(after["new"].active))


def test_the_share_of_the_others_shrinks_when_a_member_has_its_own() -> None:
    group = {
        "a": MemberSpec("p", active={"0": frozenset({0, 1, 2, 3})}),
        "b": MemberSpec("q", active={"0": frozenset({4, 5, 6})}),
        "c": MemberSpec("r"),
    }
    found = assign(group, {"0": SubtopologySpec(7)})
    assert {name: len(tasks.active["0"]) for name, tasks in found.items()} == {
        "a": 3,
        "b": 2,
        "c": 2,
    }


def test_a_member_with_a_copy_gets_the_task() -> None:
    topology = {"0": SubtopologySpec(2, True)}
    group = {
        "a": MemberSpec("p", standby={"0": frozenset({1})}),
        "b": MemberSpec("q", standby={"0": frozenset({0})}),
    }
    found = assign(group, topology)
    assert found["a"].active == {"0": {1}}
    assert found["b"].active == {"0": {0}}


def test_of_several_copies_the_one_with_more_offsets_wins() -> None:
    topology = {"0": SubtopologySpec(1, True)}
    group = {
        "a": MemberSpec("p", offsets={("0", 0): 5}),
        "b": MemberSpec("q", offsets={("0", 0): 7}),
    }
    assert assign(group, topology)["b"].active == {"0": {0}}
    group["a"] = MemberSpec("p", standby={"0": frozenset({0})})
    assert assign(group, topology)["a"].active == {"0": {0}}, "a standby task comes first"


def test_no_members_get_nothing() -> None:
    assert assign({}, {"0": SubtopologySpec(2)}) == {}


def test_another_assignor_is_refused() -> None:
    check_configured(["sticky"])
    check_configured([])
    with pytest.raises(ConfigError, match="other"):
        check_configured(["other"])
