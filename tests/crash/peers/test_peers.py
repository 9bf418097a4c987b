"""No peer makes the broker large or slow for others."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
def test_no_peer_makes_the_broker_large_or_slow_for_others() -> None:
    run("peers").check()
