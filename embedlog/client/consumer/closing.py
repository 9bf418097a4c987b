"""Closing a consumer: its commits, membership, fetch sessions and transport."""

from __future__ import annotations

from sys import is_finalizing

from embedlog.client import arguments
from embedlog.errors import KafkaError
from embedlog.user_warnings import user_line, warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.fetcher import Fetcher
    from embedlog.client.consumer.group.coordinator import ConsumerCoordinator
    from embedlog.client.consumer.hand_out import HandOut
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.runtime.pending import Pending

_CLOSE_TIMEOUT_S = 30.0


class Closing:
    """Closes one consumer. Only the first `close` has an effect."""

    def __init__(
        self, parts: ConsumerParts, driver: ConsumerDriver, fetcher: Fetcher, hand_out: HandOut
    ) -> None:
        self._parts = parts
        self._driver = driver
        self._fetcher = fetcher
        self._hand_out = hand_out
        self._made_at = user_line()

    def close(self, timeout: float | None, membership: int) -> None:
        if self._driver.guard.is_closed or self._driver.is_closing:
            return
        limit = arguments.timeout_s(timeout, "close")
        if limit is None:
            limit = _CLOSE_TIMEOUT_S
        arguments.number(membership, "close", "membership", "one of CloseOptions", lowest=0)
        with self._driver.guard:
            self._driver.is_closing = True
            deadline = self._now_ms() + int(limit * 1000)
            try:
                self._close_group(deadline, membership)
            finally:
                answers = self._fetcher.close()
                self._hand_out.close()
                for pending in answers:
                    self._wait(pending, deadline)
                if self._parts.interceptors is not None:
                    self._parts.interceptors.close()
                self._driver.guard.is_closed = True
                self._parts.transport.close()
        if self._driver.coordinator is not None:
            self._driver.coordinator.duty.join()

    def dropped(self, consumer: object) -> None:
        """Let a member leave its group: the consumer was dropped without `close`."""
        coordinator = self._driver.coordinator
        if coordinator is None or self._driver.guard.is_closed or is_finalizing():
            return
        if not coordinator.duty.abandon():
            return
        text = f"{consumer!r}, made here, was not closed: it leaves its group"
        warn_user(text, ResourceWarning, line=self._made_at)

    def _close_group(self, deadline: int, membership: int) -> None:
        coordinator = self._driver.coordinator
        if coordinator is None:
            return
        coordinator.commit_consumed(retries=True)
        try:
            self._finish_commits(coordinator, deadline)
        finally:
            answer = None
            if self._parts.subscription.is_automatic:
                answer = coordinator.depart("the consumer is being closed", membership)
            if answer is not None:
                self._wait(answer, deadline)
        coordinator.calls.raise_first()

    def _finish_commits(self, coordinator: ConsumerCoordinator, deadline: int) -> None:
        commits = coordinator.commits
        refusal: KafkaError | None = None
        if commits.open():
            try:
                left = deadline - self._now_ms()
                self._driver.drive(lambda: not commits.open(), left, coordinator.keep)
            except KafkaError as error:
                commits.fail_all(error)
                refusal = error
        commits.settle()
        if refusal is not None and type(refusal) is not self._driver.guard.last_error_type:
            raise refusal

    def _wait(self, pending: Pending[Any], deadline: int) -> None:
        while not pending.done() and (left := deadline - self._now_ms()) > 0:
            self._parts.transport.wait(pending, left)

    def _now_ms(self) -> int:
        return self._parts.transport.runtime.clock.monotonic_ms()
