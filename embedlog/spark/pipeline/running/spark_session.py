"""Opens a Spark session for a pipeline whose caller has none."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from embedlog.runtime.environment import set_default, variable
from embedlog.spark.pipeline.errors import PipelineFailed, ProjectError, brief
from embedlog.spark.pipeline.secrets import redacted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG4J = Path(__file__).resolve().with_name("log4j2.properties")


@contextmanager
def spark_errors(secrets: Sequence[str] = ()) -> Iterator[None]:
    """Turn Spark's errors into errors of the pipeline, each in one line, without the secrets.

    Raises:
        PipelineFailed: Spark raised an error.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        text = redacted(brief(error), secrets)
        raise PipelineFailed(text) from (error if text == brief(error) else None)


def is_open() -> bool:
    """Whether this process has a session."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return False
    return SparkSession.getActiveSession() is not None


def _quiet(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings that keep PySpark's own lines from the user's screen."""
    made = {"spark.python.daemon.module": "embedlog.spark.pipeline.running.quiet_daemon"}
    java = settings.get(_JAVA_OPTIONS, "")
    if variable("SPARK_CONF_DIR") is None:
        # `spark.log.level` would come after the JVM's first lines.
        java = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {java}".strip()
    else:
        made["spark.log.level"] = "ERROR"
    return {**made, _JAVA_OPTIONS: java} if java else made


def open_session(name: str, *, master: str | None = None, **settings: str) -> SparkSession:
    """Return the active session, or a new one with settings for pipelines.

    `settings` are Spark's, and override the pipelines' settings.

    Raises:
        ProjectError: PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ProjectError(
            "PySpark is not installed: pip install 'embedlog[pipeline]'; it needs Java 17 or newer"
        ) from None
    from embedlog.spark import register

    active = SparkSession.getActiveSession()
    if active is not None:
        register(active)
        return active
    # By default Spark starts some `python3`, which may lack the packages of this Python.
    set_default("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in {
        **_quiet(settings),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "10",
        **{key: value for key, value in settings.items() if key != _JAVA_OPTIONS},
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    register(session)
    return session
