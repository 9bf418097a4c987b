"""One Spark session for all tests; without PySpark or Java they are skipped, and fail in CI."""

from __future__ import annotations

import importlib.util
import logging
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
    from embedlog.spark.pipeline.kit import session_for_tests

    with tempfile.TemporaryDirectory() as directory:
        settings = {
            "spark.sql.warehouse.dir": directory,
            "spark.sql.python.filterPushdown.enabled": "true",
        }
        if has_jars(KAFKA):
            settings["spark.jars"] = ",".join(jar_files(KAFKA))
        with session_for_tests(settings) as session:
            yield session


@pytest.fixture(autouse=True)
def pytests_log_stays_text(request: pytest.FixtureRequest) -> Iterator[None]:
    """PySpark's loggers do not propagate, so pytest adds its handlers to them, and they give each
    handler they get a formatter of JSON: for good, also in the tests of others.
    """
    yield
    for logger in list(logging.root.manager.loggerDict.values()):
        if type(logger).__name__ == "PySparkLogger":
            logger.propagate = True  # type: ignore[union-attr]
    plugin = request.config.pluginmanager.get_plugin("logging-plugin")
    if plugin is not None:
        for handler in (plugin.caplog_handler, plugin.report_handler):
            handler.setFormatter(plugin.formatter)
