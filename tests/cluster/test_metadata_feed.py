"""`cluster.metadata_feed`: a broker gets every change once, in order, when it is reachable."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.cluster.metadata_feed import MetadataFeed


class Ear:
    """A broker that can be out of reach."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.is_reached = True
        self.feed = MetadataFeed(self.heard.append, lambda: self.is_reached)


def test_changes_arrive_at_once_and_in_order() -> None:
    ear = Ear()
    for change in "abc":
        ear.feed.publish(change)  # type: ignore[arg-type]
    assert ear.heard == ["a", "b", "c"]


def test_held_changes_arrive_later() -> None:
    ear = Ear()
    ear.feed.is_held = True
    ear.feed.publish("a")  # type: ignore[arg-type]
    ear.feed.deliver()
    assert not ear.heard
    ear.feed.is_held = False
    ear.feed.publish("b")  # type: ignore[arg-type]
    assert ear.heard == ["a", "b"]


def test_an_unreachable_broker_gets_changes_when_it_is_back() -> None:
    ear = Ear()
    ear.is_reached = False
    ear.feed.publish("a")  # type: ignore[arg-type]
    assert not ear.heard
    ear.is_reached = True
    ear.feed.deliver()
    assert ear.heard == ["a"]


def test_a_removed_broker_gets_no_changes() -> None:
    ear = Ear()
    ear.feed.is_held = True
    ear.feed.publish("a")  # type: ignore[arg-type]
    ear.feed.forget()
    ear.feed.is_held = False
    ear.feed.deliver()
    assert not ear.heard


def test_a_change_that_ctrl_c_kept_from_the_broker_comes_again() -> None:
    heard: list[Any] = []

    def hear(change: Any) -> None:
        heard.append(change)
        if len(heard) == 1:
            raise KeyboardInterrupt

    feed = MetadataFeed(hear, lambda: True)
    with pytest.raises(KeyboardInterrupt):
        feed.publish("a")  # type: ignore[arg-type]
    feed.publish("b")  # type: ignore[arg-type]
    assert heard == ["a", "a", "b"]


def test_a_change_that_another_one_causes_comes_after_it() -> None:
    heard: list[Any] = []

    def hear(change: Any) -> None:
        if change == "a":
            feed.publish("b")  # type: ignore[arg-type]
        heard.append(change)

    feed = MetadataFeed(hear, lambda: True)
    feed.publish("a")  # type: ignore[arg-type]
    assert heard == ["a", "b"]
