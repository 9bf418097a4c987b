"""One Spark session for all tests of the sink; without PySpark or Java they are skipped."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session that knows the format `embedlog` as a sink."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java")
    from embedlog.spark.pipeline.session import open_session
    from embedlog.spark.sink.data_source import SinkDataSource

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
        session.dataSource.register(SinkDataSource)
        yield session
        session.stop()


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A data directory with the topics `t` of three partitions and `other` of one."""
    path = str(tmp_path / "data")
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 3)
        cluster.create_topic("other", 1)
    return path
