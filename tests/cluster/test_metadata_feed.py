"""`brokers.metadata_feed`: a broker hears of every change once, in order, when it can."""

from __future__ import annotations

from typing import Any

from embedlog.cluster.metadata_feed import MetadataFeed


class Ear:
    """A broker that can be out of reach."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.is_reached = True
        self.feed = MetadataFeed(self.heard.append, lambda: self.is_reached)


def test_changes_are_heard_at_once_and_in_order() -> None:
    ear = Ear()
    for change in "abc":
        ear.feed.publish(change)  # type: ignore[arg-type]
    assert ear.heard == ["a", "b", "c"]


def test_what_is_held_back_is_heard_later() -> None:
    ear = Ear()
    ear.feed.is_held = True
    ear.feed.publish("a")  # type: ignore[arg-type]
    ear.feed.deliver()
    assert not ear.heard
    ear.feed.is_held = False
    ear.feed.publish("b")  # type: ignore[arg-type]
    assert ear.heard == ["a", "b"]


def test_a_broker_out_of_reach_hears_of_it_when_it_is_back() -> None:
    ear = Ear()
    ear.is_reached = False
    ear.feed.publish("a")  # type: ignore[arg-type]
    assert not ear.heard
    ear.is_reached = True
    ear.feed.deliver()
    assert ear.heard == ["a"]


def test_a_broker_that_is_gone_hears_of_nothing() -> None:
    ear = Ear()
    ear.feed.is_held = True
    ear.feed.publish("a")  # type: ignore[arg-type]
    ear.feed.forget()
    ear.feed.is_held = False
    ear.feed.deliver()
    assert not ear.heard
