"""`format("embedlog")`: the data source that Spark finds."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.batch_reader import BatchReader
from embedlog.spark.reading.columns import check_records_schema, records_ddl
from embedlog.spark.sink.data_source import SinkDataSource


class EmbedlogDataSource(SinkDataSource):
    """Reads and writes a data directory, or topics of brokers, with the options of Spark's Kafka
    connector.
    """

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
        """A batch read."""
        options = SourceOptions.parse(self.options, streaming=False)
        if options.table != "records":
            from embedlog.spark.reading.log_tables import TableReader

            return TableReader(options, schema)
        check_records_schema(schema)
        if options.pushdown:
            from embedlog.spark.reading.pushdown import FilteringBatchReader

            return FilteringBatchReader(options, schema)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A streaming read."""
        from embedlog.spark.reading.stream_reader import StreamReader

        options = SourceOptions.parse(self.options, streaming=True)
        check_records_schema(schema)
        return StreamReader(options, schema)
