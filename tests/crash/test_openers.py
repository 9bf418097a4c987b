"""Exactly one of two openers gets the directory."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_exactly_one_of_two_openers_gets_the_directory() -> None:
    run("openers").check()
