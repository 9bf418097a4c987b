"""A disk that is full, or a process without descriptors, harms nothing for good."""

from __future__ import annotations

import os

import pytest

from tests.crash import mounts
from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_runs_short_harms_nothing_for_good() -> None:
    run("disks").check()
    if mounts.why_not() and not os.environ.get("CI"):
        pytest.skip(f"descriptors only: {mounts.why_not()}")
