"""The rows of a Spark query are written once, whichever process dies."""

from __future__ import annotations

import pytest

from tests.crash.__main__ import run
from tests.spark.conftest import need_spark


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_are_written_once_when_drivers_workers_and_owners_of_spark_die() -> None:
    need_spark()
    run("spark").check()
