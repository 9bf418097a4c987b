"""The part of the data source `embedlog` that writes."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType


class SinkDataSource(DataSource):
    """A data source that can be written to: the base class of `EmbedlogDataSource`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "embedlog"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a DataFrame. `overwrite` is Spark's save mode, which is refused."""
        from embedlog.spark.sink.writers import BatchWriter

        return BatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        from embedlog.spark.sink.writers import StreamWriter

        return StreamWriter(dict(self.options), schema, overwrite)
