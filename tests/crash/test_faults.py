"""A failed file call breaks no promise, whether it fails once or for ever."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_failed_call_breaks_no_promise() -> None:
    run("faults").check()
