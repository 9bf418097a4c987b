"""Spark imports every top-level module `pyspark_*` and looks for `DefaultSource`, which is here.

Spark does so in several processes of a session. If one such module raises, Spark finds no source at
all: so this module never raises, even if PySpark is missing.
"""

try:
    from embedlog.spark.source import EmbedlogDataSource as DefaultSource

    __all__ = ["DefaultSource"]
except Exception:  # noqa: BLE001
    __all__ = []
