"""One of two openers has the directory."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_two_openers_one_has_the_directory() -> None:
    run("openers").check()
