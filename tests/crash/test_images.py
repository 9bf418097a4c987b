"""No promise is broken by a loss of power at any file call."""

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
        # Segments that were removed came back, and were believed: see `retention.remove_doomed`.
        ("os", ("retain", "retain", "commit")),
        # The end of a compacted log was lost, and the gap before an empty segment was believed: an
        # empty epoch cache passed for one that Kafka had written since.
        ("os", ("compact", "restart", "compact")),
        ("fsync", ("delete records", "retain", "delete records", "retain")),
    ],
)
def test_workloads_that_once_broke_a_promise(level: str, operations: tuple[str, ...]) -> None:
    silence()
    report = Report("images", Options(seed=1, count=1, soak=True))
    images = Images(report, is_thorough=True)
    with patch.object(locks, "checked_lock", None):
        images.run(level, operations, first=0)
    assert len(images.digests) > 300
    assert not report.failures
