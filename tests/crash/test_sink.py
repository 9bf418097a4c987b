"""Batches are written exactly once, whoever dies."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_batches_are_written_once_whoever_dies() -> None:
    pytest.importorskip("pyspark")
    run("sink").check()
