"""Subscriptions by pattern."""

from __future__ import annotations

import subprocess
import sys

import pytest

from embedlog import errors
from embedlog.coordinator.group.consumer import regexes
from tests.coordinator.consumer.world import World, settle

ALL = {"subscribed_topic_regex": "t.*"}


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t1", 2)
    made.make_topic("other", 2)
    return made


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("[", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("\\8", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?P<n", "invalid named capture"),
        ("a(?=b)", "invalid or unsupported Perl syntax"),
    ],
)
def test_a_pattern_that_does_not_parse(world: World, regex: str, reason: str) -> None:
    with pytest.raises(errors.InvalidRegularExpression) as caught:
        world.join("m", subscribed_topic_regex=regex)
    assert str(caught.value) == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."
    )
    assert world.shard.groups == {}


def test_whole_names_match() -> None:
    names = ["t", "t1", "at", "T"]
    assert regexes.matching("t", names) == {"t"}
    assert regexes.matching("t.*", names) == {"t", "t1"}
    assert regexes.matching("(?i:t)", names) == {"t", "T"}


def test_matching_is_linear_whatever_the_pattern() -> None:
    assert regexes.matching("(a*)*(a*)*b", ["a" * 249]) == frozenset()


def test_a_pattern_is_matched_beside_the_heartbeat(world: World) -> None:
    member = world.join("m", **ALL)
    assert (member.epoch, member.owned) == (1, {})
    assert world.group().group_epoch == 2
    assert member.beat() == {"t1": {0, 1}}
    assert member.epoch == 2


def test_a_pattern_that_matches_nothing_changes_no_epoch(world: World) -> None:
    member = world.join("m", subscribed_topic_regex="none")
    assert member.beat() is None
    assert world.group().group_epoch == 1
    assert world.group().subscriptions.resolved["none"].topics == frozenset()


def test_the_empty_pattern_is_none(world: World) -> None:
    world.join("m", subscribed_topic_regex="")
    assert world.group().subscriptions.regexes == {}
    assert world.group().state_name() == "Stable"


def test_who_comes_with_a_known_pattern_reads_at_once(world: World) -> None:
    first = world.join("m1", **ALL)
    first.beat()
    second = world.join("m2", **ALL)
    assert second.epoch == 3
    settle(first, second)
    assert (first.owned, second.owned) == ({"t1": {0}}, {"t1": {1}})


def test_new_topics_are_found_after_ten_seconds(world: World) -> None:
    member = world.join("m", **ALL)
    member.beat()
    world.make_topic("t2", 1)
    world.elapse(10_000)
    assert member.beat() is None
    assert member.beat() is None
    world.elapse(1)
    assert member.beat() is None
    assert member.beat() == {"t1": {0, 1}, "t2": {0}}


def test_a_second_pattern_waits_its_turn(world: World) -> None:
    first = world.join("m1", **ALL)
    first.beat()
    second = world.join("m2", subscribed_topic_regex="oth.*")
    assert second.beat() is None
    world.elapse(10_001)
    second.beat()
    assert second.beat() == {"other": {0, 1}}


def test_without_news_nothing_is_matched_before_the_interval(world: World) -> None:
    member = world.join("m", **ALL)
    member.beat()
    group = world.group()
    matched_ms = group.regexes_matched_ms
    assert matched_ms is not None
    for _ in range(14):
        world.elapse(40_000)
        member.beat()
        assert group.regexes_matched_ms == matched_ms
    world.elapse(40_000)
    member.beat()
    assert group.regexes_matched_ms == matched_ms + 600_000


def test_names_and_a_pattern_together(world: World) -> None:
    member = world.join("m", "other", **ALL)
    member.beat()
    assert member.owned == {"other": {0, 1}, "t1": {0, 1}}


def test_another_pattern_takes_the_place_of_the_first(world: World) -> None:
    member = world.join("m", **ALL)
    member.beat()
    assert member.beat(subscribed_topic_regex="oth.*") == {}
    world.elapse(10_001)
    settle(member)
    assert member.owned == {"other": {0, 1}}
    assert list(world.group().subscriptions.resolved) == ["oth.*"]


def test_another_pattern_that_matches_nothing_leaves_the_rest_to_the_others(world: World) -> None:
    first, second = world.join("m1", **ALL), world.join("m2", **ALL)
    settle(first, second)
    first.beat(subscribed_topic_regex="none")
    world.elapse(10_001)
    settle(first, second)
    assert (first.owned, second.owned) == ({}, {"t1": {0, 1}})


def test_giving_the_pattern_up(world: World) -> None:
    first, second = world.join("m1", **ALL), world.join("m2", **ALL)
    settle(first, second)
    first.beat(subscribed_topic_regex="", subscribed_topic_names=["other"])
    settle(first, second)
    assert first.owned == {"other": {0, 1}}
    assert second.owned == {"t1": {0, 1}}


def test_the_last_one_takes_its_pattern_along(world: World) -> None:
    first, second = world.join("m1", **ALL), world.join("m2", **ALL)
    first.leave()
    assert list(world.group().subscriptions.resolved) == ["t.*"]
    second.leave()
    assert world.group().subscriptions.resolved == {}


def test_patterns_are_matched_again_after_a_restart(world: World) -> None:
    member = world.join("m", **ALL)
    member.beat()
    world.make_topic("t2", 1)
    again = world.restarted()
    member.world = again
    assert member.confirm() is None
    assert member.confirm() == {"t1": {0, 1}, "t2": {0}}


def test_the_engine_is_loaded_with_the_first_pattern() -> None:
    code = (
        "import sys, embedlog.coordinator.group.consumer.consumer_groups\n"
        "assert 're2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
