"""Real clients of three brokers keep their guarantees under all faults, in real time."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
def test_all_clients_keep_their_guarantees_under_all_faults() -> None:
    run("nemesis").check()
