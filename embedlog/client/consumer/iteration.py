"""`iterate`: the iteration over a consumer, record after record."""

from __future__ import annotations

from _thread import get_ident

from embedlog.runtime.outer_call import INSIDE, PUT_OFF, end_calls, nested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.hand_out import HandOut
    from embedlog.client.consumer.record import ConsumerRecord, ConsumerRecords

    class Polled(Protocol):
        """A consumer."""

        def poll(self, timeout_ms: int, *, max_records: int) -> ConsumerRecords:
            """See `Consumer.poll`."""


_WAIT_MS = 1_000
_CALL = "the iteration over a Consumer"


def iterate(
    consumer: Polled,
    driver: ConsumerDriver,
    hand_out: HandOut,
    count_max: int,
    intercepts: Callable[[], bool],
) -> Iterator[ConsumerRecord]:
    """Yield the records of `Consumer.__iter__`. Each step is an outer call.

    `intercepts` returns whether the consumer has interceptors. In a forked child it refuses.
    """
    guard, next_record = driver.guard, hand_out.next_record
    while True:
        yield from consumer.poll(_WAIT_MS, max_records=1)
        if intercepts():
            continue  # only `poll` passes records through the interceptors
        for _ in range(count_max):
            me = get_ident()
            if me in INSIDE:
                raise nested(_CALL)
            INSIDE[me] = _CALL
            try:
                with guard:
                    record = None if driver.is_woken else next_record()
            finally:
                del INSIDE[me]
                if PUT_OFF:
                    end_calls()
            if record is None:
                break
            yield record
