"""One Spark session for all tests of pipelines; without PySpark or Java they are skipped."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java")
    from embedlog.spark.pipeline.session import open_session

    with tempfile.TemporaryDirectory() as directory:
        session = open_session(
            "tests",
            master="local[2]",
            **{
                "spark.driver.memory": "1g",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.sql.shuffle.partitions": "2",
                "spark.default.parallelism": "2",
                "spark.sql.warehouse.dir": directory,
            },
        )
        yield session
        session.stop()
