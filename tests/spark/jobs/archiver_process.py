"""A process that archives topic t, for tests that kill it.

    python -m tests.spark.jobs.archiver_process LOG TABLE COMMIT_RECORDS [STEP NTH]

Prints `ready` when it has a session, and `done` at the end. With STEP it dies, without any
clean-up, when it reaches that step for the NTH time.
"""

from __future__ import annotations

import os
import sys

from embedlog.spark.jobs.archive import archive
from embedlog.spark.jobs.topics import JobTopics
from embedlog.spark.pipeline.running.spark_session import open_session

STATUS = 70


def main(log: str, table: str, commit_records: str, step: str = "", nth: str = "1") -> None:
    """Archive the records that exist."""
    spark = open_session(
        "archiver",
        master="local[2]",
        **{
            "spark.driver.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.sql.warehouse.dir": f"{log}-warehouse",
        },
    )
    print("ready", flush=True)
    left = int(nth)

    def die(reached: str) -> None:
        nonlocal left
        left -= reached == step
        if reached == step and left == 0:
            os._exit(STATUS)

    archive(spark, JobTopics(("t",), log), table, commit_records=int(commit_records), reached=die)
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
