"""Batches are written exactly once, whichever process dies."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run
from tests.spark.conftest import need_spark


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_batches_are_written_once_whichever_process_dies() -> None:
    need_spark()
    run("sink").check()
