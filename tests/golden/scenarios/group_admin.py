"""ListGroups with filters, DescribeGroups and DeleteGroups of groups of every kind."""

from __future__ import annotations

from tests.golden.group_requests import (
    commit,
    delete_groups,
    describe,
    describe_consumers,
    first_beat,
    join,
    list_groups,
)
from tests.golden.members import Member, form, warm_up
from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario_on


def _some_of_each(run: Run) -> dict[str, str]:
    """Make groups in every state, of both types; return them by kind."""
    topic = make_topic(run)
    names = ("simple", "stable", "empty", "preparing", "completing", "pending", "connect")
    groups = {name: run.group(name) for name in (*names, "consumers", "left")}
    run.setup(commit(groups["simple"], topic, (0, 1)), 9)
    form(run, groups["stable"], "a")
    (gone,) = form(run, groups["empty"], "a")
    gone.leave(keep=False)
    form(run, groups["preparing"], "a")
    late = Member(run, groups["preparing"], "b", version=3)
    late.begin_join(keep=False)
    run.normal(run.setup(join(groups["completing"]), 3))
    run.setup(join(groups["pending"]), 9)
    form(run, groups["connect"], "w", protocols=[("default", b"")], kind="connect")
    run.setup(first_beat(groups["consumers"], "m", topic[0]), 1)
    run.setup(first_beat(groups["left"], "m", topic[0]), 1)
    run.setup(first_beat(groups["left"], "m", epoch=-1, topics=None, owns=None), 1)
    return groups


@scenario_on("groups")
def list_groups_by_filter(run: Run) -> None:
    warm_up(run)
    _some_of_each(run)
    for version in range(6):
        run.send(list_groups(), version, "all")
    states = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead", "Assigning",
              "Reconciling", "Unknown", "NotReady", "stable", "EMPTY", "preparingrebalance",
              "no such state", "")  # fmt: skip
    for version in (4, 5):
        for state in states:
            run.send(list_groups(states=[state]), version, f"state {state!r}")
        run.send(list_groups(states=["Stable", "Empty"]), version, "two states")
    for kind in ("classic", "consumer", "Classic", "CONSUMER", "share", "streams", "unknown", "",
                 "no such type"):  # fmt: skip
        run.send(list_groups(types=[kind]), 5, f"type {kind!r}")
    run.send(list_groups(types=["classic", "consumer"]), 5, "two types")
    run.send(list_groups(types=["consumer"], states=["Stable"]), 5, "a type and a state")
    run.send(list_groups(types=["classic"], states=["Empty"]), 5, "a type and a state")


@scenario_on("groups")
def describe_groups_of_each_kind(run: Run) -> None:
    warm_up(run)
    groups = _some_of_each(run)
    for version in range(7):
        for kind, group in groups.items():
            run.send(describe(group), version, kind)
        several = describe(groups["stable"], run.group("unknown"), groups["consumers"])
        run.send(several, version, "stable, unknown and consumers")
        run.send(describe(), version, "none")
        run.send(describe(run.group("nobody")), version, "unknown")
        run.send(describe(groups["stable"], groups["stable"]), version, "one twice")
        if version >= 3:
            asked = describe(groups["stable"], run.group("unknown"), operations=True)
            run.send(asked, version, "with authorised operations")


@scenario_on("groups")
def describe_consumer_groups_of_each_kind(run: Run) -> None:
    warm_up(run)
    groups = _some_of_each(run)
    for version in (0, 1):
        for kind, group in groups.items():
            run.send(describe_consumers(group), version, kind)
        run.send(describe_consumers(run.group("unknown")), version, "unknown")
        run.send(describe_consumers(""), version, "the empty group")
        run.send(describe_consumers(), version, "none")
        several = describe_consumers(groups["consumers"], groups["stable"], groups["left"])
        run.send(several, version, "several")
        twice = describe_consumers(groups["consumers"], groups["consumers"])
        run.send(twice, version, "one twice")
        asked = describe_consumers(groups["consumers"], groups["stable"], operations=True)
        run.send(asked, version, "with authorised operations")


@scenario_on("groups")
def delete_groups_of_each_kind(run: Run) -> None:
    warm_up(run)
    groups = _some_of_each(run)
    run.setup(delete_groups(""), 2)  # another scenario may have created it
    for version in range(4):
        for kind in ("stable", "preparing", "completing", "connect", "consumers"):
            run.send(delete_groups(groups[kind]), version, kind)
        run.send(delete_groups(run.group("unknown")), version, "unknown")
        run.send(delete_groups(""), version, "the empty group")
        run.send(delete_groups(), version, "none")
        some = delete_groups(groups["stable"], run.group("unknown"), "")
        run.send(some, version, "several, none of them possible")
    run.send(delete_groups(groups["simple"], groups["stable"], groups["left"]), 2, "two can go")
    run.send(delete_groups(groups["empty"], groups["empty"]), 2, "one twice")
    run.send(delete_groups(groups["pending"]), 2, "with a pending member only")
    run.send(list_groups(), 5, "the others")
    for kind in ("simple", "left", "empty"):
        run.send(describe(groups[kind]), 6, kind)
