"""Periodic elections: preferred leaders, and unclean ones where allowed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.controller.state import ControllerState


class LeaderDuties:
    """A duty of the scheduler, for a cluster of several.

    It moves leaders to preferred replicas each leader.imbalance.check.interval.seconds, if
    auto.leader.rebalance.enable, and elects leaders for partitions without one each
    unclean.leader.election.interval.ms. The first time is after one interval.
    """

    def __init__(
        self,
        state: ControllerState,
        rebalance_leaders: Callable[[], int],
        elect_unclean: Callable[[], int],
    ) -> None:
        self._state = state
        self._rebalance_leaders = rebalance_leaders
        self._elect_unclean = elect_unclean
        now_ms = state.clock.monotonic_ms()
        self._balanced_ms = now_ms
        self._elected_ms = now_ms

    def run_once(self, now_ms: int) -> int:
        """Run the due elections; return the time to the next ones."""
        config = self._state.config
        balance_ms: int = config.leader_imbalance_check_interval_seconds * 1000
        election_ms: int = config.unclean_leader_election_interval_ms
        if now_ms - self._balanced_ms >= balance_ms:
            self._balanced_ms = now_ms
            if config.auto_leader_rebalance_enable:
                self._rebalance_leaders()
        if now_ms - self._elected_ms >= election_ms:
            self._elected_ms = now_ms
            self._elect_unclean()
        next_ms = min(self._balanced_ms + balance_ms, self._elected_ms + election_ms)
        return max(next_ms - now_ms, 1)
