"""A fork harms neither side."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fork_harms_neither_the_child_nor_the_parents_data() -> None:
    run("forks").check()
