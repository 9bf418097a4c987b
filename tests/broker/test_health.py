"""`Cluster.health`: degradations of the directory and of background work."""

from __future__ import annotations

import pytest

import embedlog
from embedlog.errors import ClosedError


class FailingDuty:
    """Fails until a test sets `is_well`."""

    is_well = False

    def run_once(self, _now_ms: int) -> int:
        if not self.is_well:
            raise ValueError("no luck")
        return 1_000


def test_a_cluster_in_memory_and_one_on_disk_are_well(tmp_path) -> None:
    for path in (None, tmp_path / "data"):
        with embedlog.open(path) as cluster:
            cluster.create_topic("events", 3)
            assert cluster.health() == []
    with pytest.raises(ClosedError):
        cluster.health()


def test_work_that_fails_in_the_background_is_told_until_it_succeeds() -> None:
    with embedlog.open() as cluster:
        scheduler, clock = cluster.runtime.scheduler, cluster.runtime.clock
        duty = FailingDuty()
        began_ms = clock.wall_ms()
        scheduler.add(duty)
        scheduler.run_due(clock.monotonic_ms())
        first_ms = cluster.health()[0].since_ms
        scheduler.run_due(clock.monotonic_ms() + 2_000)
        (found,) = cluster.health()
        assert (found.kind, found.subject) == ("work failing", "FailingDuty")
        assert found.reason == "ValueError: no luck"
        assert began_ms <= first_ms == found.since_ms, "since it first failed"
        duty.is_well = True
        scheduler.run_due(clock.monotonic_ms() + 4_000)
        assert cluster.health() == []
