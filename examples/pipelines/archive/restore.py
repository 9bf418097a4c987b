"""A topic from its archive: the same keys, values, headers, timestamps, partitions and order."""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog
from embedlog.spark.pipeline import read_table


def main(directory: Path) -> None:
    table = read_table(directory / "tables/events").to_arrow()
    table = table.sort_by([("_partition", "ascending"), ("_offset", "ascending")])
    with embedlog.open(directory / "restored") as cluster, cluster.producer() as producer:
        # Fails where the topic is there already: a restore that was begun twice doubles nothing.
        cluster.create_topic("events", 1 + max(table["_partition"].to_pylist()))
        for batch in table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                producer.send(
                    "events",
                    row["value"],
                    key=row["key"],
                    partition=row["_partition"],
                    timestamp_ms=int(row["_timestamp"].timestamp() * 1000),
                    headers=[(each["key"], each["value"]) for each in row["headers"] or ()],
                )
        producer.flush()
    print(f"{table.num_rows} records in {directory / 'restored'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
