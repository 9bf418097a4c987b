"""The turn goes to threads in the order of their calls, and is never lost."""

from __future__ import annotations

import threading

from embedlog.client.drivers.turn_lock import TurnLock


def test_turns_are_given_in_the_order_of_asking() -> None:
    lock = TurnLock()
    lock.acquire()
    order: list[int] = []
    threads = []
    for number in range(5):

        def take(number: int = number) -> None:
            lock.acquire()
            order.append(number)
            lock.release()

        thread = threading.Thread(target=take)
        thread.start()
        while lock.waiting_count <= number:
            pass
        threads.append(thread)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3, 4]
    assert not lock.is_taken


def test_a_turn_is_held_by_one_thread_at_a_time() -> None:
    lock = TurnLock()
    inside = [0]
    seen: list[int] = []

    def work() -> None:
        for _ in range(300):
            lock.acquire()
            inside[0] += 1
            seen.append(inside[0])
            inside[0] -= 1
            lock.release()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(seen) == 1200
    assert set(seen) == {1}


def test_a_turn_that_ctrl_c_has_left_taken_is_given_back_by_the_next_asking() -> None:
    lock = TurnLock()
    lock.acquire()  # and the interrupt comes before the code that gives it back
    taken: list[str] = []

    def take() -> None:
        lock.acquire()
        taken.append("other")
        lock.release()

    other = threading.Thread(target=take)
    other.start()
    while lock.waiting_count < 1:
        pass
    lock.acquire()
    taken.append("this")
    lock.release()
    other.join(10)
    assert taken == ["other", "this"]
    assert not lock.is_taken


def test_a_thread_in_the_line_hurries_whoever_has_the_turn() -> None:
    lock = TurnLock()
    in_line: list[int] = []
    lock.acquire(lambda: in_line.append(-1))
    assert not in_line, "nobody was to be hurried"
    thread = threading.Thread(target=lambda: lock.acquire(hurry))

    def hurry() -> None:
        in_line.append(lock.waiting_count)
        lock.release()

    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert in_line == [1]
    assert lock.is_taken
