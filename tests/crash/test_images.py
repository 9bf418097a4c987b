"""A loss of power at any file call breaks no promise."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from embedlog.runtime import locks
from tests.crash.__main__ import run
from tests.crash.images import Images
from tests.crash.report import Options, Report
from tests.crash.simulated import silence


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_loss_of_power_anywhere_keeps_every_promise() -> None:
    run("images").check()


@pytest.mark.slow
@pytest.mark.parametrize(
    "level, operations",
    [
        # Removed segments came back, and recovery trusted them: see `retention.remove_doomed`.
        ("os", ("retain", "retain", "commit")),
        # The end of a compacted log was lost, and recovery trusted the gap before an empty segment:
        # it took an empty epoch cache for a newer one of Kafka.
        ("os", ("compact", "restart", "compact")),
        ("fsync", ("delete records", "retain", "delete records", "retain")),
    ],
)
def test_workloads_that_once_broke_a_promise_keep_it(
    level: str, operations: tuple[str, ...]
) -> None:
    silence()
    report = Report("images", Options(seed=1, count=1, soak=True))
    images = Images(report, is_thorough=True)
    with patch.object(locks, "checked_lock", None):
        images.run(level, operations, first=0)
    assert len(images.digests) > 300
    assert not report.failures
