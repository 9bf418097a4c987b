"""What a killed writer has acknowledged is there."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_a_killed_writer_acknowledged_is_there() -> None:
    run("kill").check()
