"""A streaming query that a harness kills, from a topic to another one, or to a pipeline's table.

    python -m tests.crash.spark_job KIND SOURCE TARGET STATE PER_TRIGGER

TARGET is a directory, or for the KIND `wire` an address. Prints `started` once there is a session
and `done` when all input is written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from embedlog.spark.pipeline.project import parse
from embedlog.spark.pipeline.running.runner import Runner
from embedlog.spark.pipeline.running.spark_session import open_session

SCHEMA = {
    "type": "struct",
    "fields": [{"name": "id", "type": "long", "nullable": False, "metadata": {}}],
}


def main(kind: str, source: str, target: str, state: str, per_trigger: str) -> None:
    """Run the query to its end."""
    # A task whose worker is killed runs again: `local[2]` would not retry.
    spark = open_session(
        "killed",
        master="local[2,4]",
        **{
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.sql.warehouse.dir": f"{state}/warehouse",
        },
    )
    print("started", flush=True)
    if kind == "topic":
        _to_topic(spark, source, {"path": target}, state, per_trigger)
    elif kind == "wire":
        over = {"kafka.bootstrap.servers": target, "kafka.transactional.id": "killed"}
        _to_topic(spark, source, over, state, per_trigger)
    else:
        _to_table(spark, kind, source, target, state, per_trigger)
    print("done", flush=True)
    spark.stop()


def _to_topic(
    spark: Any, source: str, target: dict[str, str], state: str, per_trigger: str
) -> None:
    read = spark.readStream.format("embedlog").option("path", source).option("subscribe", "in")
    read = read.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", per_trigger)
    query = (
        read.load()
        .select("key", "value")
        .writeStream.format("embedlog")
        .options(**target)
        .option("topic", "t")
        .option("checkpointLocation", f"{state}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _to_table(
    spark: Any, kind: str, source: str, target: str, state: str, per_trigger: str
) -> None:
    directory = Path(state)
    (directory / "schema.json").write_text(json.dumps(SCHEMA))
    project = {
        "pipeline": {"name": "killed", "state": "state"},
        "source": {
            "topics": ["in"],
            "path": source,
            "options": {"maxOffsetsPerTrigger": per_trigger},
        },
        "decode": {"format": "json", "schema": "schema.json"},
        "sink": [{"name": "rows", "type": kind, "path": target}],
    }
    Runner(spark, parse(project, directory=directory)).run(available_now=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
