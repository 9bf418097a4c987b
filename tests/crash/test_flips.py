"""A flipped bit is told, or harmless."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
def test_every_flipped_bit_is_told_or_harmless() -> None:
    run("flips").check()
