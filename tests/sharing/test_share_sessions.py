"""Share sessions: epochs, limits, connections, and the order of partitions."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.sharing.share_sessions import EPOCH_MAX, FINAL, ShareSessions

ONE, TWO = ("group", "one"), ("group", "two")
TOPIC = bytes(range(16))


def places(*numbers: int) -> list[tuple[bytes, int]]:
    """Return partitions of a topic."""
    return [(TOPIC, number) for number in numbers]


@pytest.fixture
def sessions() -> ShareSessions:
    """A cache for two sessions, with three partitions each, and four together."""
    return ShareSessions(2, session_size_max=3, total_size_max=4)


def test_one_follows_the_largest_epoch(sessions: ShareSessions) -> None:
    session = sessions.open(ONE, None)
    session.epoch = EPOCH_MAX
    assert sessions.go_on(ONE, EPOCH_MAX) is session
    assert session.epoch == 1
    with pytest.raises(errors.InvalidShareSessionEpoch):
        sessions.go_on(ONE, EPOCH_MAX)
    assert sessions.go_on(ONE, 1) is session


def test_the_number_of_sessions_is_limited_but_one_may_be_replaced(sessions: ShareSessions) -> None:
    sessions.open(ONE, None)
    former = sessions.open(TWO, None)
    with pytest.raises(errors.ShareSessionLimitReached):
        sessions.open(("group", "three"), None)
    assert sessions.open(TWO, None) is not former
    sessions.go_on(ONE, FINAL)
    assert len(sessions) == 1
    sessions.open(("group", "three"), None)


def test_the_partitions_of_a_session_and_of_all_are_limited(sessions: ShareSessions) -> None:
    one, two = sessions.open(ONE, None), sessions.open(TWO, None)
    with pytest.raises(errors.ShareSessionLimitReached):
        sessions.update(one, places(0, 1, 2, 3), (), is_opening=True)
    sessions.update(two, places(0), (), is_opening=True)
    with pytest.raises(errors.ShareSessionLimitReached):
        sessions.update(two, places(1), (), is_opening=False)
    sessions.update(one, (), places(2), is_opening=False)
    sessions.update(two, places(1), (), is_opening=False)
    sessions.go_on(ONE, FINAL)
    sessions.update(two, places(2), (), is_opening=False)


def test_a_connection_ends_the_session_that_it_opened_last(sessions: ShareSessions) -> None:
    sessions.open(ONE, "connection")
    second = sessions.open(TWO, "connection")
    assert sessions.connection_closed("other") is None
    assert not second.is_over
    assert sessions.connection_closed("connection") is second
    assert second.is_over
    assert sessions.connection_closed("connection") is None
    assert sessions.has("group")
    with pytest.raises(errors.ShareSessionNotFound):
        sessions.go_on(TWO, 1)
    with pytest.raises(errors.ShareSessionNotFound):
        sessions.update(second, places(0), (), is_opening=False)


def test_a_connection_tells_of_a_session_that_its_member_has_closed(
    sessions: ShareSessions,
) -> None:
    session = sessions.open(ONE, "connection")
    assert sessions.go_on(ONE, FINAL) is session
    assert sessions.connection_closed("connection") is session
    assert not sessions.has("group")


def test_a_connection_does_not_end_a_session_that_another_has_replaced(
    sessions: ShareSessions,
) -> None:
    sessions.open(ONE, "old")
    replaced = sessions.open(ONE, "new")
    assert sessions.connection_closed("old") is None
    assert sessions.go_on(ONE, 1) is replaced


def test_partitions_take_turns(sessions: ShareSessions) -> None:
    session = sessions.open(ONE, None)
    sessions.update(session, places(0, 1, 2), (), is_opening=True)
    orders = [[entry.place[1] for entry in session.served(epoch)] for epoch in (0, 1, 2, 3)]
    assert orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    session.to_the_end((TOPIC, 0))
    assert [entry.place[1] for entry in session.served(0)] == [1, 2, 0]
