"""A process that writes versions of an application over the wire until it is killed.

`python -m tests.spark.sink.transactional_job ADDRESS FIRST` prints each committed version. Every
version has five rows, divided among tasks by chance.
"""

from __future__ import annotations

import itertools
import random
import sys

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from embedlog.spark.sink.writers import BatchWriter

SCHEMA = StructType([StructField("value", StringType())])
ROWS = 5


def write(address: str, version: int) -> None:
    """Do Spark's part with a frame: tasks write, then one process commits."""
    options = {
        "topic": "t",
        "kafka.bootstrap.servers": address,
        "kafka.transactional.id": "job",
        "txnAppId": "app",
        "txnVersion": str(version),
    }
    writer = BatchWriter(options, SCHEMA, False)
    values = [str(number) for number in range(ROWS * version, ROWS * (version + 1))]
    cut = random.randrange(ROWS + 1)
    tasks = [
        pa.record_batch({"value": pa.array(some, pa.string())})
        for some in (values[:cut], values[cut:])
    ]
    writer.commit([writer.write(iter([task])) for task in tasks])


if __name__ == "__main__":
    print("ready", flush=True)
    for number in itertools.count(int(sys.argv[2])):
        write(sys.argv[1], number)
        print(number, flush=True)
