"""Write a topic to a Parquet table with Spark, from a log's directory or from a cluster.

    python spark_read.py path ./data events ./events.parquet
    python spark_read.py kafka.bootstrap.servers localhost:9092 events ./events.parquet

Only the source's option and its value differ. The owner of the directory may write during the read.
Needs Java 17 and `pip install 'embedlog[spark]'`.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from embedlog.spark import recommended_conf, register


def main(option: str, place: str, topic: str, table: str) -> None:
    """Write the present records of `topic` to a table, replacing an existing one."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in recommended_conf().items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    records = spark.read.format("embedlog").option(option, place).option("subscribe", topic).load()
    records.write.mode("overwrite").parquet(table)
    print(f"{spark.read.parquet(table).count()} records")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
