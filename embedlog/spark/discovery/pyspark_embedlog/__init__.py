"""Found by Spark, which imports every top-level module `pyspark_*` and looks for `DefaultSource`.

It does so in several processes of a session, and one such module that raises hides the sources of
all: so this one raises nothing, whatever is installed.
"""

try:
    from embedlog.spark.source import EmbedlogDataSource as DefaultSource

    __all__ = ["DefaultSource"]
except Exception:  # noqa: BLE001
    __all__ = []
