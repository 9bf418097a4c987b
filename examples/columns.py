"""Read a partition as numpy columns over the mapped segment, without a Python object per record."""

from __future__ import annotations

import embedlog


def main() -> None:
    """Count a hundred thousand records and add up the sizes of their values."""
    with embedlog.open() as cluster:
        cluster.create_topic("measurements", partitions=1)
        with cluster.producer() as producer:
            for _ in range(100):
                producer.send_batch("measurements", [b"12.5"] * 1000)
        count = size = 0
        with cluster.consumer() as consumer:
            consumer.assign([("measurements", 0)])
            consumer.seek_to_beginning()
            while count < 100_000:
                for part in consumer.poll_columns(1000):
                    count += len(part.offsets)
                    size += int(part.value_sizes.sum())
        print(f"{count} records, {size} bytes of values")


if __name__ == "__main__":
    main()
