"""`one_ahead`: the order of items, errors of the generator, and a clean end of its thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator

import pytest

from embedlog.runtime.ahead import one_ahead


class Made:
    """A generator of numbers that records its threads and its end."""

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
    # One item waits and one is being made; there is no third.
    assert made.begun == 3
    assert list(items) == list(range(1, 10))


def test_no_items() -> None:
    made = Made(0)
    assert list(one_ahead(made.numbers(), "made")) == []
    assert made.is_closed


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_an_error_comes_after_the_items_before_it(count: int) -> None:
    made = Made(count, ValueError("no more"))
    seen = []
    with pytest.raises(ValueError, match="no more"):
        for number in one_ahead(made.numbers(), "made"):
            seen.append(number)
    assert seen == list(range(count))


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_stopping_early_closes_the_generator_and_ends_its_thread(taken: int) -> None:
    before = threading.active_count(), sys.getswitchinterval()
    made = Made(5)
    items = one_ahead(made.numbers(), "made")
    for _ in range(taken):
        next(items)
    items.close()
    assert made.is_closed
    assert (threading.active_count(), sys.getswitchinterval()) == before


def test_an_error_in_the_loop_ends_the_thread() -> None:
    before = threading.active_count()
    made = Made(1_000_000)
    with pytest.raises(KeyError):
        for number in one_ahead(made.numbers(), "made"):
            if number == 3:
                raise KeyError(number)
    del number
    assert threading.active_count() == before
    assert made.is_closed
