"""The programs of this directory find bugs."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_planted_bug_is_found(lock_violations: list[str]) -> None:
    run("planted").check()
    assert lock_violations
