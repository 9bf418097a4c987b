"""A streaming query for tests that kill it: writes files of numbers to a topic until all are
written.

    python stream_job.py DATA SOURCE CHECKPOINT SEED

Attempts fail now and then: `local[2,4]` runs a task again, unlike `local[2]`.
"""

from __future__ import annotations

import random
import sys

from pyspark import TaskContext
from pyspark.sql.functions import udf

from embedlog.spark import register
from embedlog.spark.pipeline.running.spark_session import open_session


def main() -> None:
    data, source, checkpoint, seed = sys.argv[1:]
    spark = open_session(
        "killed",
        master="local[2,4]",
        **{
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
        },
    )
    register(spark)

    @udf("long")
    def fail_sometimes(number: int) -> int:
        context = TaskContext.get()
        assert context is not None
        chance = random.Random(f"{seed}-{context.taskAttemptId()}-{number}")
        if context.attemptNumber() == 0 and chance.random() < 0.002:
            raise RuntimeError("a task that fails")
        return number

    frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(source)
    frame = frame.repartition(3).select(fail_sometimes("id").alias("id"))
    query = (
        frame.selectExpr("cast(id as string) key", "cast(id as string) value")
        .writeStream.format("embedlog")
        .option("path", data)
        .option("topic", "t")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main()
