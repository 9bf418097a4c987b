"""One Spark session for all tests; without PySpark or Java they are skipped, and fail in CI."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.tools import has_jars, jar_files

KAFKA = "spark-kafka"


def need_spark() -> None:
    """Skip, or fail in CI, where a session cannot be had."""
    missing = [
        what
        for what, is_there in (
            ("PySpark", importlib.util.find_spec("pyspark") is not None),
            ("Java", shutil.which("java") is not None),
        )
        if not is_there
    ]
    if missing:
        tell = pytest.fail if os.environ.get("CI") else pytest.skip
        tell(f"{' and '.join(missing)} missing: `.ci/test` installs it")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session, `embedlog` registered; with Spark's Kafka connector where it is installed."""
    need_spark()
    from embedlog.spark import register
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
                "spark.sql.python.filterPushdown.enabled": "true",
                **({"spark.jars": ",".join(jar_files(KAFKA))} if has_jars(KAFKA) else {}),
            },
        )
        register(session)
        yield session
        session.stop()
