"""The check of share groups' histories finds each broken promise."""

from __future__ import annotations

import pytest

from tests.interop.share.story import LIMIT, check
from tests.interop.share.worker import Event

FIRST = [
    Event("got", 10, 0, 5, "1 7"),
    Event("try", 12, 0, 5, "accept"),
    Event("did", 15, 0, 5, "accept"),
]
REJECTED = [
    Event("got", 10, 0, 6, "1 8"),
    Event("try", 12, 0, 6, "reject"),
    Event("did", 15, 0, 6, "reject"),
]


def broken(other: list[Event], *, letters: bool = True, one: bool = True) -> str:
    """Check the two records of `FIRST` and `REJECTED` with the events of another member."""
    events = {"a": [*FIRST, *REJECTED], "b": other}
    return "\n".join(check(events, {7, 8}, [(0, 6)] if letters else [], is_one_broker=one))


def test_a_good_history_breaks_nothing() -> None:
    assert broken([]) == ""
    again = [Event("got", 1, 0, 5, "2 7"), Event("try", 2, 0, 5, "release")]
    assert broken([*again, Event("did", 3, 0, 5, "release")]) == ""


@pytest.mark.parametrize(
    ("other", "promise"),
    [
        ([Event("got", 10, 0, 5, "1 7")], "delivered to two members at once"),
        ([Event("got", 10, 0, 5, f"{LIMIT + 1} 7")], f"delivered {LIMIT + 1} times"),
        ([Event("got", 10, 0, 9, "1 9")], "neither accepted nor rejected"),
        (
            [
                Event("got", 11, 0, 5, "2 7"),
                Event("try", 16, 0, 5, "accept"),
                Event("did", 17, 0, 5, "accept"),
            ],
            "acknowledged after its end",
        ),
        (
            [
                Event("got", 1, 0, 6, "2 8"),
                Event("try", 2, 0, 6, "accept"),
                Event("did", 3, 0, 6, "accept"),
            ],
            "was accepted and is a dead letter",
        ),
    ],
)
def test_a_broken_promise_is_named(other: list[Event], promise: str) -> None:
    assert promise in broken(other)


def test_a_missing_record_or_dead_letter_is_named() -> None:
    assert "has no dead letter" in broken([], letters=False)
    assert "never delivered: [9]" in "\n".join(
        check({"a": [*FIRST, *REJECTED]}, {7, 8, 9}, [(0, 6)], is_one_broker=True)
    )
    assert "not a rejection" in "\n".join(check({"a": FIRST}, {7}, [(0, 5)], is_one_broker=True))


def test_equal_counts_are_allowed_where_leaders_change() -> None:
    assert broken([Event("got", 10, 0, 5, "1 7")], one=False) == ""
