"""The sum of unread answers, and the peer that has to go when they are too many."""

from __future__ import annotations

import pytest

from wire.net.unread_answers import UnreadAnswers


@pytest.fixture
def cut_off() -> list[str]:
    return []


@pytest.fixture
def unread(cut_off: list[str]) -> UnreadAnswers:
    return UnreadAnswers(10, cut_off.append)


def test_a_peer_that_has_read_all_begins_again(unread: UnreadAnswers, cut_off: list[str]) -> None:
    unread.note("one", 9, 1.0)
    unread.note("one", 0, 2.0)
    assert (unread.size, unread.stalled_at("one")) == (0, float("inf"))
    unread.note("one", 9, 5.0)
    unread.note("other", 2, 4.0)
    assert unread.size == 11
    assert cut_off == ["other"], "it has stalled for longer"


def test_only_more_bytes_cut_a_peer_off(unread: UnreadAnswers, cut_off: list[str]) -> None:
    unread.note("one", 10, 1.0)
    assert cut_off == []
    unread.note("one", 20, 1.0)
    assert cut_off == ["one"]
    for size in (15, 11):
        unread.note("one", size, 2.0)
    assert cut_off == ["one"], "it reads"
