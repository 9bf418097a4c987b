"""Items made one ahead: their order, what is raised, and that nothing goes on afterwards."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator

import pytest

from embedlog.runtime.ahead import one_ahead


class Made:
    """Numbers, and what became of their generator."""

    def __init__(self, count: int, error: BaseException | None = None) -> None:
        self._count = count
        self._error = error
        self.begun = 0
        self.is_closed = False
        self.threads: set[int] = set()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.changed = threading.Condition()

    def numbers(self) -> Generator[int, None, None]:
        try:
            for number in range(self._count):
                with self.changed:
                    self.begun = number + 1
                    self.changed.notify_all()
                self.threads.add(threading.get_ident())
                self.may_go_on.wait(10)
                yield number
            if self._error is not None:
                raise self._error
        finally:
            self.threads.add(threading.get_ident())
            self.is_closed = True


def test_all_items_come_in_order_from_one_other_thread() -> None:
    made = Made(1_000)
    assert list(one_ahead(made.numbers(), "made")) == list(range(1_000))
    assert made.is_closed
    assert len(made.threads) == 1
    assert threading.get_ident() not in made.threads


def test_the_next_item_is_made_while_one_is_used() -> None:
    made = Made(10)
    items = one_ahead(made.numbers(), "made")
    assert next(items) == 0
    with made.changed:
        assert made.changed.wait_for(lambda: made.begun == 3, 10)
    # One waits and one is made: no third.
    assert made.begun == 3
    assert list(items) == list(range(1, 10))


def test_nothing_at_all() -> None:
    made = Made(0)
    assert list(one_ahead(made.numbers(), "made")) == []
    assert made.is_closed


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_what_is_raised_comes_behind_the_items_before_it(count: int) -> None:
    made = Made(count, ValueError("no more"))
    seen = []
    with pytest.raises(ValueError, match="no more"):
        for number in one_ahead(made.numbers(), "made"):
            seen.append(number)
    assert seen == list(range(count))


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_who_stops_early_leaves_no_thread_and_an_open_generator_none(taken: int) -> None:
    before = threading.active_count(), sys.getswitchinterval()
    made = Made(5)
    items = one_ahead(made.numbers(), "made")
    for _ in range(taken):
        next(items)
    items.close()
    assert made.is_closed
    assert (threading.active_count(), sys.getswitchinterval()) == before


def test_an_error_of_the_taker_ends_it_too() -> None:
    before = threading.active_count()
    made = Made(1_000_000)
    with pytest.raises(KeyError):
        for number in one_ahead(made.numbers(), "made"):
            if number == 3:
                raise KeyError(number)
    del number
    assert threading.active_count() == before
    assert made.is_closed
