"""A worker that is killed: it takes numbers and writes them elsewhere, each exactly once.

    python -m tests.client.producer.transactions.killed_worker address count

It prints a line for each committed transaction, and ends when all numbers are done.
"""

from __future__ import annotations

import sys

from embedlog import Consumer, Producer, TopicPartition

TAKEN = TopicPartition("taken", 0)


def main(address: str, count: int) -> None:
    with (
        Producer(address, transactional_id="worker") as producer,
        Consumer(
            address,
            group_id="workers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ) as consumer,
    ):
        producer.init_transactions()
        consumer.assign([TAKEN])
        while consumer.position(TAKEN) < count:
            polled = consumer.poll(1_000, max_records=7)
            if polled:
                with producer.transaction() as transaction:
                    for record in polled:
                        transaction.send("out", record.value, partition=record.offset % 2)
                    transaction.send_offsets(consumer)
                print("committed", consumer.position(TAKEN), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
