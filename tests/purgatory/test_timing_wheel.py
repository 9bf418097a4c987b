"""The timing wheel: placement, moves to lower levels, and equality with a heap."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embedlog.purgatory.timing_wheel import GHOSTS_KEPT, TimerTask, TimingWheel
from tests.support import sizes


class Task(TimerTask):
    def run(self) -> None:
        raise AssertionError("a wheel runs nothing")


def add(wheel: TimingWheel, expiration_ms: int) -> TimerTask:
    task = Task(0)
    assert wheel.add(task, expiration_ms)
    return task


def place(task: TimerTask) -> int | None:
    """Return the expiration of the task's bucket."""
    return None if task.bucket is None else task.bucket.expiration_ms


def test_the_worked_example():
    wheel = TimingWheel(tick_ms=1, wheel_size=3, start_ms=0)
    one, four, ten = add(wheel, 1), add(wheel, 4), add(wheel, 10)
    assert [place(one), place(four), place(ten)] == [1, 3, 9]
    assert wheel.queue == [(1, 0), (3, 1), (9, 2)]
    assert wheel.advance(1) == [one]
    assert wheel.advance(2) == []
    assert wheel.advance(3) == []
    assert place(four) == 4
    assert wheel.next_expiration_ms() == 4
    assert wheel.advance(4) == [four]
    assert wheel.advance(9) == []
    assert place(ten) == 10
    assert wheel.advance(10) == [ten]
    assert wheel.size == 0
    assert wheel.next_expiration_ms() is None


@pytest.mark.parametrize(
    ("delay_ms", "level_tick"),
    [
        (1, 1),
        (19, 1),
        (20, 20),
        (399, 20),
        (400, 400),
        (7_999, 400),
        (8_000, 8_000),
        (159_999, 8_000),
        (160_000, 160_000),
        (3_199_999, 160_000),
        (3_200_000, 3_200_000),
    ],
)
@pytest.mark.parametrize("start_ms", [0, 8_000_000_000])
def test_a_level_reaches_twenty_of_its_ticks(delay_ms, level_tick, start_ms):
    wheel = TimingWheel(start_ms=start_ms)
    task = add(wheel, start_ms + delay_ms)
    due_ms = start_ms + delay_ms
    assert place(task) == due_ms - due_ms % level_tick
    level = [1, 20, 400, 8_000, 160_000, 3_200_000].index(level_tick)
    assert wheel.queue == [(place(task), level)]


def test_levels_are_made_on_demand():
    wheel = TimingWheel(start_ms=0)
    add(wheel, 19)
    assert len(wheel.levels) == 1
    add(wheel, 20)
    assert len(wheel.levels) == 2
    add(wheel, 400 * 20 * 20)
    assert len(wheel.levels) == 5


def test_what_is_due_within_the_present_tick_is_refused():
    wheel = TimingWheel(tick_ms=10, wheel_size=3, start_ms=105)
    assert wheel.current_time_ms == 100
    assert not wheel.add(Task(0), 109)
    assert not wheel.add(Task(0), -5)
    assert place(add(wheel, 110)) == 110


def test_a_task_expires_no_earlier_than_its_tick():
    wheel = TimingWheel(tick_ms=10, wheel_size=3, start_ms=0)
    task = add(wheel, 25)
    assert wheel.advance(19) == []
    assert wheel.advance(20) == [task]


def test_adding_again_moves_the_task():
    wheel = TimingWheel(start_ms=0)
    task = add(wheel, 5)
    assert wheel.add(task, 500)
    assert wheel.size == 1
    assert wheel.advance(499) == []
    assert wheel.advance(500) == [task]
    assert wheel.add(task, 501)
    assert wheel.advance(501) == [task]


def test_a_task_that_left_a_bucket_and_came_back_expires_once():
    wheel = TimingWheel(start_ms=0)
    task = add(wheel, 100)
    for _ in range(3):
        assert task.cancel()
        assert not task.cancel()
        assert wheel.add(task, 100)
    assert wheel.size == 1
    assert wheel.advance(1000) == [task]
    assert wheel.size == 0


def test_moving_a_task_to_the_past_takes_it_out():
    wheel = TimingWheel(start_ms=50)
    task = add(wheel, 100)
    assert not wheel.add(task, 50)
    assert task.bucket is None
    assert wheel.size == 0


def test_cancelled_far_timers_hold_no_memory():
    wheel = TimingWheel(start_ms=0)
    stays = add(wheel, 10_000_000)
    bucket = stays.bucket
    assert bucket is not None
    for _ in range(10_000):
        add(wheel, 10_000_001).cancel()
        assert len(bucket) <= 2 * (1 + GHOSTS_KEPT)
    assert wheel.size == 1


def test_a_task_rearmed_for_ever_stays_one_entry_or_few():
    wheel = TimingWheel(start_ms=0)
    task = add(wheel, 30_000)
    for _ in range(10_000):
        assert wheel.add(task, 30_000)
    assert task.bucket is not None
    assert len(task.bucket) <= 2 * (1 + GHOSTS_KEPT)
    assert wheel.size == 1
    assert wheel.advance(30_000) == [task]


def test_nobody_wakes_for_a_bucket_of_ghosts():
    wheel = TimingWheel(start_ms=0)
    add(wheel, 3).cancel()
    far = add(wheel, 1000)
    assert wheel.next_expiration_ms() == place(far)
    far.cancel()
    assert wheel.next_expiration_ms() is None
    assert wheel.queue == []


def test_time_moved_by_an_add_does_not_lose_what_is_due():
    wheel = TimingWheel(start_ms=0)
    early = add(wheel, 10)
    wheel.move_time(5_000)
    late = add(wheel, 5_010)
    assert place(late) == 5_010
    assert wheel.advance(5_005) == [early]
    assert wheel.advance(5_010) == [late]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(-5, 70_000) | st.integers(0, 60)),
        st.tuples(st.just("cancel"), st.integers(0, 200)),
        st.tuples(st.just("again"), st.integers(0, 200)),
        st.tuples(st.just("advance"), st.integers(0, 30) | st.integers(0, 20_000)),
    ),
    max_size=120,
)


@pytest.mark.slow
@settings(max_examples=sizes.size(60, full=150), deadline=None)
@given(
    start_ms=st.integers(0, 1 << 40),
    tick_ms=st.sampled_from([1, 1, 1, 3, 10]),
    wheel_size=st.sampled_from([20, 2, 3, 7]),
    steps=STEPS,
)
@example(
    start_ms=0,
    tick_ms=1,
    wheel_size=20,
    steps=[("add", 401), ("add", 400), ("advance", 401)],
)
def test_the_wheel_equals_a_heap(start_ms, tick_ms, wheel_size, steps):
    """The same tasks in the same order by tick, after any additions and cancellations."""
    wheel = TimingWheel(start_ms=start_ms, tick_ms=tick_ms, wheel_size=wheel_size)
    heap: list[tuple[int, int]] = []
    tasks: list[TimerTask] = []
    live: dict[int, int] = {}  # slot in tasks -> tick
    now_ms = start_ms

    def insert(slot: int, delay_ms: int) -> None:
        expiration_ms = now_ms + delay_ms
        waits = wheel.add(tasks[slot], expiration_ms)
        tick = expiration_ms // tick_ms
        assert waits == (tick > now_ms // tick_ms)
        live.pop(slot, None)
        if waits:
            live[slot] = tick
            heapq.heappush(heap, (tick, slot))

    def expect(until_ms: int) -> list[tuple[int, int]]:
        due = []
        while heap and heap[0][0] <= until_ms // tick_ms:
            tick, slot = heapq.heappop(heap)
            if live.get(slot) == tick:
                del live[slot]
                due.append((tick, slot))
        return due

    for action, number in steps:
        if action == "add":
            tasks.append(Task(0))
            insert(len(tasks) - 1, number)
        elif action == "advance":
            now_ms += number
            found = wheel.advance(now_ms)
            ticks = [task.expiration_ms // tick_ms for task in found]
            assert ticks == sorted(ticks)
            slots = {id(task): slot for slot, task in enumerate(tasks)}
            assert sorted((t, slots[id(k)]) for t, k in zip(ticks, found, strict=True)) == expect(
                now_ms
            )
        elif tasks:
            slot = number % len(tasks)
            if action == "cancel":
                assert tasks[slot].cancel() == (live.pop(slot, None) is not None)
            else:
                insert(slot, number * 37)
        assert wheel.size == len(live)
        next_ms = wheel.next_expiration_ms()
        assert (next_ms is None) == (not live)
        if live:
            assert next_ms <= min(live.values()) * tick_ms
        for slot, task in enumerate(tasks):
            assert (task.bucket is not None) == (slot in live)


@pytest.mark.slow
def test_a_level_never_has_more_than_399_buckets():
    """As the docstring says: the tasks of a due bucket move down by two levels of 20."""
    wheel = TimingWheel(start_ms=0)
    for expiration_ms in range(1, 20_000):
        add(wheel, expiration_ms)
    most = 0
    while (due_ms := wheel.next_expiration_ms()) is not None:
        wheel.advance(due_ms)
        most = max(most, *[len(level) for level in wheel.levels])
    assert most == 399
