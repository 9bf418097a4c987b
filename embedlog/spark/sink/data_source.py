"""The writing half of the data source `embedlog`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class SinkDataSource(DataSource):
    """A data source that can be written to. `format("embedlog")` inherits from it."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "embedlog"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a DataFrame. Spark says `overwrite` for that save mode: it is refused."""
        from embedlog.spark.sink.writers import BatchWriter

        return BatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of a streaming query."""
        from embedlog.spark.sink.writers import StreamWriter

        return StreamWriter(dict(self.options), schema, overwrite)
