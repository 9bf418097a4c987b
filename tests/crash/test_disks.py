"""A full disk, or a process without descriptors, does no lasting harm."""

from __future__ import annotations

import os

import pytest

from tests.crash import mounts
from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_full_disk_or_too_few_descriptors_do_no_lasting_harm() -> None:
    run("disks").check()
    if mounts.why_not() and not os.environ.get("CI"):
        pytest.skip(f"descriptors only: {mounts.why_not()}")
