"""embedlog on Apache Spark: a data source with the options of Spark's Kafka connector.

    from embedlog import spark as embedlog_spark

    embedlog_spark.register(spark)
    spark.read.format("embedlog").option("path", "data").option("subscribe", "orders").load()

Needs PySpark 4.2 and Java 17 or newer: `pip install 'embedlog[spark]'`. Nothing outside this
package loads PySpark. Spark finds an installed data source by itself; call `register` in sessions
that do not look for one, such as Spark Connect's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedlog.errors import EmbedlogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PySparkMissing", "recommended_conf", "register"]

_VERSION_MIN = (4, 2)


class PySparkMissing(EmbedlogError, ImportError):
    """PySpark is missing, or older than the data source needs."""


def register(spark: SparkSession) -> None:
    """Make `format("embedlog")` known to this session.

    Raises:
        PySparkMissing: PySpark is older than 4.2.
    """
    check_version()
    from embedlog.spark.source import EmbedlogDataSource

    spark.dataSource.register(EmbedlogDataSource)


def recommended_conf() -> dict[str, str]:
    """Return settings for a session's builder that make reads faster.

    >>> from embedlog.spark import recommended_conf
    >>> recommended_conf()["spark.sql.session.timeZone"]
    'UTC'
    """
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }


def check_version() -> None:
    """Check that a new enough PySpark is installed.

    Raises:
        PySparkMissing: PySpark is missing or older than 4.2.
    """
    try:
        from pyspark import __version__ as found
    except ImportError as error:
        raise PySparkMissing(
            "PySpark is not installed: pip install 'embedlog[spark]'; it needs Java 17 or newer"
        ) from error
    if tuple(int(part) for part in found.split(".")[:2]) < _VERSION_MIN:
        raise PySparkMissing(f"PySpark {found} is too old: the data source needs 4.2 or newer")
