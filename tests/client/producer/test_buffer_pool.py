"""buffer.memory under many threads: never exceeded, served in order, all given back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from embedlog import errors
from embedlog.client.errors import BufferExhausted
from embedlog.client.producer.accumulator import BufferPool
from embedlog.client.producer.producer import Producer
from embedlog.errors import ClosedError, EmbedlogError
from embedlog.runtime.pending import Pending
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.schemas.produce import ProduceRequest

THREADS = 32
JOIN_SECONDS = 60


def run_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run `work(number)` in threads; raise the exception of a thread."""
    raised: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(JOIN_SECONDS)
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]


class Held:
    """Holds the answers to produce requests until the test releases them."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.requests: list[tuple[Any, Pending[Any]]] = []
        broker.faults.append(self._hold)

    def _hold(self, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return PASS
        self.requests.append((request, Pending()))
        return self.requests[-1][1]

    def answer_first(self) -> None:
        request, pending = self.requests.pop(0)
        pending.complete(self.broker.answer(request))

    def release(self) -> None:
        self.broker.faults.clear()
        while self.requests:
            self.answer_first()


def wait_until(condition: Callable[[], bool]) -> None:
    """Let the other threads run until `condition()`."""
    pause = threading.Event()
    for _ in range(JOIN_SECONDS * 1000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come to pass")


def test_a_reserve_is_taken_whole_or_not_at_all() -> None:
    pool = BufferPool(100)
    assert pool.reserve(60)
    assert not pool.reserve(41)
    assert pool.available == 40
    assert pool.reserve(40)
    pool.release(60)
    pool.release(40)
    assert pool.available == 100
    with pytest.raises(AssertionError):
        pool.reserve(101)
    with pytest.raises(AssertionError):
        pool.release(1)


def test_nobody_is_served_before_the_thread_at_the_head() -> None:
    pool = BufferPool(100)
    pool.reserve(100)
    pool.queue_up()
    pool.release(10)
    served: list[bool] = []
    run_threads(lambda _: served.append(pool.reserve(10)), 1)
    assert served == [False], "what is given back gathers for the one that waits"
    assert not pool.reserve(100)
    pool.release(90)
    assert pool.reserve(100)
    pool.leave()
    pool.release(100)
    run_threads(lambda _: served.append(pool.reserve(10)), 1)
    assert served == [False, True]


def test_threads_get_memory_in_the_order_they_asked() -> None:
    broker = ScriptedBroker({"t": THREADS + 1})
    held = Held(broker)
    with Producer(broker.transport(), buffer_memory=1000, batch_size=1000) as producer:
        metrics = producer.metrics
        producer.send("t", bytes(800), partition=THREADS)
        order: list[int] = []
        threads = []
        for number in range(THREADS):

            def work(number: int = number) -> None:
                producer.send("t", bytes(800), partition=number)
                order.append(number)

            thread = threading.Thread(target=work)
            thread.start()
            threads.append(thread)
            wait_until(lambda number=number: metrics()["waiting-threads"] == number + 1)
        for number in range(THREADS):
            wait_until(lambda: bool(held.requests))
            held.answer_first()
            wait_until(lambda number=number: len(order) == number + 1)
            assert order == list(range(number + 1))
            assert metrics()["buffer-available-bytes"] == 0
        held.release()
        for thread in threads:
            thread.join(JOIN_SECONDS)
    assert metrics()["buffer-available-bytes"] == 1000


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_the_bound_holds_and_everything_is_given_back(fails: bool) -> None:
    broker = ScriptedBroker({"t": 4})
    lowest: list[int] = []
    numbers = [0]

    def watch(request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            lowest.append(producer.metrics()["buffer-available-bytes"])
            numbers[0] += 1
            if fails and numbers[0] % 3 == 0:
                refused = Pending[Any]()
                refused.fail(errors.InvalidRecord("every third"))
                return refused
        return PASS

    broker.faults.append(watch)
    outcomes: list[bool] = []
    with Producer(broker.transport(), buffer_memory=5_000, batch_size=1_000) as producer:

        def work(number: int) -> None:
            futures = [
                producer.send("t", b"%d:%d" % (number, n) + bytes(90), b"%d" % n) for n in range(50)
            ]
            outcomes.extend(future.exception() is None for future in futures)

        run_threads(work)
        producer.flush()
        metrics = producer.metrics()
        assert metrics["buffer-available-bytes"] == 5_000
        assert metrics["waiting-threads"] == 0
        assert "0 batches on their way" in repr(producer)
    assert min(lowest) >= 0
    assert len(outcomes) == THREADS * 50
    written = sum(len(broker.values("t", partition)) for partition in range(4))
    assert outcomes.count(True) == written
    assert fails == (written < THREADS * 50)


@pytest.mark.slow
@pytest.mark.parametrize("linger_ms", [0, 5])
def test_the_bound_holds_over_sockets_too(linger_ms: int) -> None:
    import embedlog

    with embedlog.open(num_partitions=4) as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        counts: list[int] = []
        with Producer(
            address, buffer_memory=5_000, batch_size=1_000, linger_ms=linger_ms
        ) as producer:

            def work(number: int) -> None:
                futures = [
                    producer.send("t", b"%d:%d" % (number, n) + bytes(90), b"%d" % n)
                    for n in range(30)
                ]
                counts.append(len({future.result(30)[1:3] for future in futures}))

            run_threads(work)
            metrics = producer.metrics()
            assert metrics["buffer-available-bytes"] == 5_000
            assert metrics["waiting-threads"] == 0
            assert metrics["record-send-total"] == THREADS * 30
        assert counts == [30] * THREADS


def test_a_full_buffer_fails_every_waiting_thread_after_max_block_ms() -> None:
    broker = ScriptedBroker({"t": 1})
    held = Held(broker)
    seen: list[Any] = []
    with Producer(
        broker.transport(), buffer_memory=1000, batch_size=1000, max_block_ms=50
    ) as producer:
        first = producer.send("t", bytes(800))

        def work(_: int) -> None:
            future = producer.send("t", bytes(800), on_delivery=lambda m, e: seen.append((m, e)))
            with pytest.raises(BufferExhausted, match=r"max\.block\.ms=50"):
                future.result(0)

        run_threads(work)
        assert len(seen) == THREADS
        assert all(metadata.offset == -1 for metadata, _ in seen)
        metrics = producer.metrics()
        assert metrics["buffer-exhausted-total"] == metrics["record-error-total"] == THREADS
        assert metrics["bufferpool-wait-time-ns-total"] >= THREADS * 50_000_000
        assert metrics["waiting-threads"] == 0
        held.release()
        assert first.result().offset == 0
        assert producer.send("t", bytes(800)).result().offset == 1
    assert producer.metrics()["buffer-available-bytes"] == 1000


def test_closing_fails_the_threads_that_wait() -> None:
    broker = ScriptedBroker({"t": 1})
    held = Held(broker)
    producer = Producer(broker.transport(), buffer_memory=1000, batch_size=1000)
    producer.send("t", bytes(800))
    ends: list[BaseException | None] = []

    def work(_: int) -> None:
        try:
            ends.append(producer.send("t", bytes(800)).exception())
        except EmbedlogError as error:
            ends.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: producer.metrics()["waiting-threads"] == 8)
    producer.close(0)
    for thread in threads:
        thread.join(JOIN_SECONDS)
    assert [type(end) for end in ends] == [ClosedError] * 8
    assert producer.metrics()["buffer-available-bytes"] == 1000
    held.release()


def test_a_batch_larger_than_the_memory_is_sent_in_pieces() -> None:
    broker = ScriptedBroker({"t": 1})
    with Producer(broker.transport(), buffer_memory=20_000) as producer:
        parts = producer.send_batch("t", [bytes(500)] * 200).result()
        assert sum(part.record_count for part in parts) == 200
        assert len(parts) > 5
        with pytest.raises(errors.MessageTooLarge, match=r"buffer\.memory=20000"):
            producer.send("t", bytes(20_000)).result()
        assert producer.metrics()["buffer-available-bytes"] == 20_000
    assert broker.values("t") == [bytes(500)] * 200
