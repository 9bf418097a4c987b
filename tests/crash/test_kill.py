"""Records that a killed writer acknowledged survive."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_records_that_a_killed_writer_acknowledged_survive() -> None:
    run("kill").check()
