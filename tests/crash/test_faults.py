"""A file call that fails costs nothing that was acknowledged, and nothing else fails."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
def test_every_failing_call_costs_nothing_that_was_acknowledged() -> None:
    run("faults").check()
