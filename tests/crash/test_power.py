"""Records acknowledged at level fsync survive a loss of power."""

from __future__ import annotations

import os

import pytest

from tests.crash import mounts
from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    bool(mounts.why_not()) and not os.environ.get("CI"), reason=str(mounts.why_not())
)
def test_acknowledged_records_survive_a_loss_of_power() -> None:
    run("power").check()
