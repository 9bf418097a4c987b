"""No promise is broken by a loss of power at any file call."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_loss_of_power_anywhere_keeps_every_promise() -> None:
    run("images").check()
