"""Sessions of brokers: a broker that is silent for broker.session.timeout.ms is fenced."""

from __future__ import annotations

from collections.abc import Callable

from embedlog.controller.partitions import check_broker_epoch
from embedlog.controller.state import ControllerState
from embedlog.logger import Logger

_log = Logger("controller")


class BrokerSessions:
    """The sessions of brokers, a duty of the scheduler. Any thread may call `touch`.

    The session of a broker that was registered when the log was opened begins with the first run.
    """

    def __init__(self, state: ControllerState, fence: Callable[[int], None]) -> None:
        self._state = state
        self._fence = fence
        self._heard_ms: dict[int, int] = {}
        self._missed: dict[int, int] = {}
        """Node ids that the last run found silent, with the time of their last sign of life."""

    def touch(self, node_id: int, epoch: int) -> None:
        """Restart the broker's session. Raises StaleBrokerEpoch for an earlier registration."""
        with self._state.lock:
            check_broker_epoch(self._state.image, node_id, epoch)
            self._heard_ms[node_id] = self._state.clock.monotonic_ms()

    def forget(self, node_id: int) -> None:
        with self._state.lock:
            self._heard_ms.pop(node_id, None)

    def is_valid(self, node_id: int) -> bool:
        """Return whether the broker is unfenced and its session has not ended."""
        state = self._state
        with state.lock:
            broker = state.image.brokers.get(node_id)
            heard_ms = self._heard_ms.get(node_id)
            if broker is None or broker.is_fenced or heard_ms is None:
                return False
            return heard_ms + self._timeout_ms >= state.clock.monotonic_ms()

    def run_once(self, now_ms: int) -> int:
        """Fence brokers whose sessions have ended; return the time to the next end of a session.

        The first run that finds a broker silent asks for a second run at once, and only the second
        fences the broker. If the whole process stood still, heartbeats are as late as the first
        run, and arrive between the two. Brokers are fenced one after the other, so that each leader
        is elected from the remaining brokers.
        """
        state = self._state
        with state.lock:
            timeout_ms = self._timeout_ms
            silent = []
            delay_ms = timeout_ms
            for broker in state.image.brokers.values():
                if broker.is_fenced:
                    self._heard_ms.pop(broker.node_id, None)
                    continue
                heard_ms = self._heard_ms.setdefault(broker.node_id, now_ms)
                if heard_ms + timeout_ms < now_ms:
                    silent.append((heard_ms, broker.node_id))
                else:
                    delay_ms = min(delay_ms, heard_ms + timeout_ms + 1 - now_ms)
            missed, self._missed = self._missed, {}
            for heard_ms, node_id in sorted(silent):
                if missed.get(node_id) != heard_ms:
                    self._missed[node_id] = heard_ms
                    delay_ms = 0
                    continue
                _log.warning("broker %d was not heard of for %d ms", node_id, timeout_ms)
                self._fence(node_id)
                self._heard_ms.pop(node_id, None)
        return delay_ms

    @property
    def _timeout_ms(self) -> int:
        timeout_ms: int = self._state.config.broker_session_timeout_ms
        return timeout_ms
