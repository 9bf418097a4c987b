"""`format("embedlog")`: the data source that Spark finds."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.batch_reader import BatchReader
from embedlog.spark.reading.columns import check_records_schema, records_ddl


class EmbedlogDataSource(DataSource):
    """Reads and writes topics of a directory or of brokers; see `options` and `sink.options`."""

    @classmethod
    def name(cls) -> str:
        return "embedlog"

    def schema(self) -> str:
        """Return the columns of a read for which the user gives no schema."""
        table = (self.options.get("table") or "records").lower()
        if table != "records":
            from embedlog.spark.reading.log_tables import TABLES

            if table in TABLES:
                return TABLES[table].ddl
        wants_headers = (self.options.get("includeHeaders") or "false").lower()
        return records_ddl(headers=wants_headers == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SourceOptions.parse(self.options, streaming=False)
        if options.table != "records":
            from embedlog.spark.reading.log_tables import TableReader

            return TableReader(options, schema)
        check_records_schema(schema)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from embedlog.spark.reading.stream_reader import StreamReader

        options = SourceOptions.parse(self.options, streaming=True)
        check_records_schema(schema)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a DataFrame. `overwrite` is Spark's save mode, which is refused."""
        from embedlog.spark.sink.writers import BatchWriter

        return BatchWriter(dict(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from embedlog.spark.sink.writers import StreamWriter

        return StreamWriter(dict(self.options), schema, overwrite)
