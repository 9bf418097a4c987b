"""A Spark data source that reads nothing, to show the cost of Spark's Python interface itself.

It makes its Arrow batches once and returns them again and again. No source in Python can be faster:
each batch goes over a socket to the JVM, which makes rows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from embedlog.spark.options import MAX_BATCH_BYTES
from embedlog.spark.reading.columns import arrow_schema, records_ddl

KEY = b"key-%012d"
TASKS = 4


class ReadyDataSource(DataSource):
    """`format("ready")`: `count` records with values of `size` bytes."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return records_ddl(headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(schema, int(self.options["count"]), int(self.options["size"]))


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, count: int, size: int) -> None:
        self._schema = schema
        self._count = count
        self._size = size

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        rest = self._count // TASKS
        rows = min(rest, MAX_BATCH_BYTES // self._size)
        batch = _batch(self._schema, rows, self._size, partition.value)
        while rest > 0:
            yield batch.slice(0, min(rest, rows))
            rest -= rows


def _batch(schema: StructType, rows: int, size: int, partition: int) -> Any:
    import numpy as np
    import pyarrow as pa

    kinds = {field.name: field.type for field in arrow_schema(schema)}
    offsets = np.arange(rows)
    columns = {
        "key": [KEY % number for number in range(rows)],
        "value": [bytes(size)] * rows,
        "topic": ["t"] * rows,
        "partition": np.full(rows, partition, np.int32),
        "offset": offsets,
        "timestamp": offsets,
        "timestampType": np.zeros(rows, np.int32),
    }
    arrays = [pa.array(columns[name], kind) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(schema))
