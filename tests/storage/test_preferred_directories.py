"""Preferred directories of logs: kept for one use, and limited in number."""

from __future__ import annotations

from embedlog.common import TopicPartition
from embedlog.storage.data_directories import PREFERRED_COUNT_MAX, PreferredDirectories


def test_a_wish_holds_for_one_log() -> None:
    preferred, place = PreferredDirectories(), TopicPartition("t", 0)
    assert preferred.take(place) is None
    preferred.note(place, "a")
    preferred.note(place, "b")
    assert [preferred.take(place), preferred.take(place)] == ["b", None]


def test_of_too_many_wishes_the_oldest_are_forgotten() -> None:
    preferred = PreferredDirectories()
    for number in range(PREFERRED_COUNT_MAX + 1):
        preferred.note(TopicPartition("t", number), "a")
    assert preferred.take(TopicPartition("t", 0)) is None
    assert preferred.take(TopicPartition("t", 1)) == "a"
