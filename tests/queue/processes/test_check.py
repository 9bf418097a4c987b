"""The check of stories finds each broken promise, and accepts the allowed surprises."""

from __future__ import annotations

import pytest

from tests.queue.processes.check import problems
from tests.queue.processes.events import (
    ACKED,
    GOT,
    PUT,
    REJECTED,
    RELEASED,
    TRYING,
    UNSURE,
    Event,
    parse,
)

JOB = "p1-0"
GOOD = (
    Event(1, PUT, JOB),
    Event(2, GOT, JOB, 10, 1),
    Event(2, TRYING, JOB),
    Event(2, ACKED, JOB, 20),
)


def told(*events: Event, dead: tuple[str, ...] = (), owner_deaths: int = 0) -> str:
    found = problems(events, dead, delivery_limit=3, owner_deaths=owner_deaths)
    return "\n".join(found)


def delivered(count: int, *, at_us: int = 1) -> list[Event]:
    """Return the events of a delivery that ends in a release."""
    return [
        Event(2, GOT, JOB, at_us, count),
        Event(2, TRYING, JOB),
        Event(2, RELEASED, JOB, at_us + 1),
    ]


def test_a_line_is_read_as_it_was_written() -> None:
    event = Event(7, GOT, JOB, 123, 2)
    assert parse(7, event.line()) == event


def test_a_good_story_has_no_problem() -> None:
    assert not told(*GOOD)
    assert not told(*GOOD, *delivered(1, at_us=5), *delivered(2, at_us=8))


def test_a_job_that_nobody_worked_is_lost() -> None:
    assert "was never worked" in told(GOOD[0])


def test_a_job_that_nobody_settled_is_lost() -> None:
    assert "was never settled" in told(*GOOD[:2])
    assert "was never settled" in told(GOOD[0], *delivered(1))


def test_an_unknown_outcome_may_be_an_acknowledgement() -> None:
    assert not told(*GOOD[:3]), "the worker was killed"
    assert not told(*GOOD[:3], Event(2, UNSURE, JOB)), "the answer was lost"


@pytest.mark.parametrize("kind", [ACKED, REJECTED])
def test_a_settled_job_is_not_worked_again(kind: str) -> None:
    dead = (JOB,) if kind == REJECTED else ()
    story = [*GOOD[:3], Event(2, kind, JOB, 20)]
    assert "after it was settled" in told(*story, Event(3, GOT, JOB, 21, 2), dead=dead)
    assert not told(*story, Event(3, GOT, JOB, 19, 2), dead=dead), "it asked before the answer"
    again = [Event(3, GOT, JOB, 19, 2), Event(3, TRYING, JOB), Event(3, ACKED, JOB, 30)]
    late = Event(4, GOT, JOB, 25, 3)
    assert "after it was settled" in told(*story, *again, late, dead=dead)


def test_a_worker_may_have_a_job_from_a_dead_owner_but_cannot_settle_it() -> None:
    again = (*GOOD, Event(3, GOT, JOB, 21, 1), Event(3, TRYING, JOB))

    def found(kind: str) -> list[str]:
        story = (*again, Event(3, kind, JOB, 30))
        return problems(story, (), delivery_limit=3, owner_deaths=1, fetches_ahead=True)

    assert not found(UNSURE)
    assert "after it was settled" in "".join(found(ACKED))


def test_a_job_that_was_appended_again_may_be_there_twice() -> None:
    story = [*GOOD[:2], Event(2, TRYING, JOB, 0, 1), Event(2, REJECTED, JOB, 20)]
    assert not told(*story, Event(3, GOT, JOB, 30, 1), Event(3, ACKED, JOB, 40), dead=(JOB, JOB))


def test_a_job_is_delivered_up_to_the_limit() -> None:
    three = [event for count in (1, 2, 3) for event in delivered(count)]
    assert not told(GOOD[0], *three, dead=(JOB,))
    assert "was delivered 4 times" in told(GOOD[0], *three, *delivered(4), dead=(JOB,))
    assert "was delivered 4 times" in told(GOOD[0], *three, *delivered(3), dead=(JOB,))
    assert not told(GOOD[0], *three, *delivered(3), dead=(JOB,), owner_deaths=1)
    assert "was delivered" in told(GOOD[0], *delivered(4), dead=(JOB,), owner_deaths=9)


def test_a_rejected_job_is_dead() -> None:
    story = [*GOOD[:3], Event(2, REJECTED, JOB, 20)]
    assert "is not dead" in told(*story)
    assert not told(*story, dead=(JOB,))


def test_a_dead_job_has_a_reason() -> None:
    assert "dead without a reason" in told(GOOD[0], *delivered(1), dead=(JOB,))
    assert not told(GOOD[0], *delivered(1), *GOOD[1:3], dead=(JOB,)), "perhaps it was rejected"
    assert "nobody saw it" in told(*GOOD, dead=("p9-9",))


def test_a_job_is_dead_once() -> None:
    story = [*GOOD[:3], Event(2, REJECTED, JOB, 20)]
    assert "is dead 2 times" in told(*story, dead=(JOB, JOB))
    assert not told(*story, dead=(JOB, JOB), owner_deaths=1)


def test_a_job_of_a_dead_putter_may_be_there_or_not() -> None:
    assert not told(*GOOD[1:])
