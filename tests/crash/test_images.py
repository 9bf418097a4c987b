"""What a crash leaves of a simulated disk holds what was promised."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
def test_crash_images_hold_what_is_promised() -> None:
    run("images").check()
