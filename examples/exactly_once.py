"""Read orders and write invoices exactly once: a transaction holds the records and the offsets.

Run it twice: the second run continues where the first one stopped. Kill it at any moment: the
transaction of the current order is aborted, and the next run writes its invoices again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog


def main(directory: Path) -> None:
    """Append three orders, then write the invoices of all orders without one."""
    with embedlog.open(directory) as cluster:
        for topic in {"orders", "invoices", "stock"} - set(cluster.topics):
            cluster.create_topic(topic, partitions=1)
        with cluster.producer() as shop:
            for number in range(3):
                shop.append("orders", f"order {number}".encode())
        with (
            # The id belongs to one worker: a second producer with this id would fence the first.
            cluster.producer(transactional_id="invoices") as producer,
            cluster.consumer(
                group_id="invoices", auto_offset_reset="earliest", enable_auto_commit=False
            ) as consumer,
        ):
            producer.init_transactions()
            consumer.subscribe(["orders"])
            while orders := consumer.poll(2_000, max_records=1):
                with producer.transaction() as transaction:
                    for order in orders:
                        transaction.send("invoices", b"invoice for " + order.value)
                        transaction.send("stock", b"one less for " + order.value)
                    transaction.send_offsets(consumer)
        with cluster.consumer(isolation_level="read_committed") as reader:
            reader.assign([("invoices", 0)])
            reader.seek_to_beginning()
            for invoice in reader.poll(2_000):
                print(invoice.value.decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
