"""What was acknowledged at level fsync survives the loss of power."""

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
def test_what_was_acknowledged_survives_the_loss_of_power() -> None:
    run("power").check()
