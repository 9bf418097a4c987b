"""Hostile peers cost a broker little memory, and others little time."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_hostile_peers_cost_little_memory_and_others_little_time() -> None:
    run("peers").check()
