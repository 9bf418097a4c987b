"""Closing a share consumer: its acknowledgements, sessions, membership and transport."""

from __future__ import annotations

from sys import is_finalizing

from embedlog.client import arguments
from embedlog.user_warnings import user_line, warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.share.driver import ShareDriver
    from embedlog.client.share.hand_out import ShareHandOut
    from embedlog.client.share.parts import ShareParts
    from embedlog.runtime.pending import Pending

_CLOSE_TIMEOUT_S = 30.0


class ShareClosing:
    """Closes one share consumer. Only the first `close` has an effect."""

    def __init__(self, parts: ShareParts, driver: ShareDriver, hand_out: ShareHandOut) -> None:
        self._parts = parts
        self._driver = driver
        self._hand_out = hand_out
        self._made_at = user_line()
        self._is_closing = False

    def close(self, timeout: float | None) -> None:
        driver = self._driver
        if driver.guard.is_closed or self._is_closing:
            return
        limit = arguments.timeout_s(timeout, "close")
        if limit is None:
            limit = _CLOSE_TIMEOUT_S
        with driver.guard:
            self._is_closing = True
            deadline = self._now_ms() + int(limit * 1000)
            try:
                self._end_sessions(deadline)
                answer = driver.coordinator.depart()
                if answer is not None:
                    self._wait(answer, deadline)
                driver.settle()
            finally:
                self._hand_out.close()
                driver.guard.is_closed = True
                self._parts.transport.close()
        driver.coordinator.duty.join()

    def dropped(self, consumer: object) -> None:
        """Let a member leave its group: the consumer was dropped without `close`."""
        driver = self._driver
        if driver.guard.is_closed or is_finalizing():
            return
        if not driver.coordinator.duty.abandon():
            return
        text = f"{consumer!r}, made here, was not closed: it leaves its group"
        warn_user(text, ResourceWarning, line=self._made_at)

    def _end_sessions(self, deadline: int) -> None:
        """Send the acknowledgements, release the other records, and wait for the answers."""
        leaders, now_ms = self._driver.leaders, self._now_ms()
        leaders.queue(self._driver.in_flight.take(accepts=False), deadline)
        leaders.take_arrived(now_ms)
        for pending in leaders.close():
            self._wait(pending, deadline)
        leaders.take_arrived(self._now_ms())
        leaders.fail_all()

    def _wait(self, pending: Pending[Any], deadline: int) -> None:
        while not pending.done() and (left := deadline - self._now_ms()) > 0:
            self._parts.transport.wait(pending, left)

    def _now_ms(self) -> int:
        return self._parts.transport.runtime.clock.monotonic_ms()
