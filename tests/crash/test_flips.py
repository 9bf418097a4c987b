"""A flipped bit in any file is reported or harmless."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_flipped_bit_is_reported_or_harmless() -> None:
    run("flips").check()
