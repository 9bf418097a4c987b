"""Writing over the wire with `kafka.transactional.id`: all rows of a batch in one transaction.

    task         returns its rows to the committer in its message; sends nothing
    committer    takes the transactional id: this fences the old producer and aborts its transaction
                 asks the group for the next version: earlier versions are done, and skipped
                 sends all rows and commits `version + 1` for the group, in one transaction

The group is `<transactional.id>-<application>`, for a stream `<transactional.id>-<query id>`. The
version is stored as the committed offset of partition 0 of the batch's first topic by name, because
a broker stores offsets only for topics that it has; the largest offset of the group counts. So the
rows and their version appear together or not at all, and a replayed batch may be cut into other
tasks. Separate transactions of the tasks could not promise this, because they end one by one: after
a crash of the driver in between, the replay would write some rows twice.

The price: all rows of a batch pass through the driver, compressed. spark.driver.maxResultSize
limits their size, and transaction.timeout.ms the time to send them. Offsets of an unused group
expire after the broker's offsets.retention.minutes (a week): a batch that is replayed later is
written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from embedlog.client.admin.admin import Admin
from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
from embedlog.client.producer.producer import Producer
from embedlog.client.settings import ADMIN
from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.sink.options import COLUMNS, SinkOptions
from embedlog.spark.sink.rows import by_topic
from embedlog.spark.sink.task import send_rows


@dataclass
class RowsMessage(WriterCommitMessage):
    """A task's message to the committer: the commit that its rows belong to, and the rows.

    `rows` is an Arrow stream of `count` rows; empty without rows.
    """

    application: str
    version: int
    count: int
    rows: bytes


def pack(batches: Iterable[pa.RecordBatch]) -> tuple[int, bytes]:
    """Return the count of a task's rows, and the rows compressed, with a record's columns only."""
    stream = pa.BufferOutputStream()
    writer = None
    count = 0
    for batch in batches:
        if not len(batch):
            continue
        batch = batch.select([name for name in batch.schema.names if name in COLUMNS])
        if writer is None:
            how = pa.ipc.IpcWriteOptions(compression="lz4")
            writer = pa.ipc.new_stream(stream, batch.schema, options=how)
        writer.write_batch(batch)
        count += len(batch)
    if writer is None:
        return 0, b""
    writer.close()
    return count, stream.getvalue().to_pybytes()


def commit_rows(options: SinkOptions, messages: Sequence[RowsMessage]) -> bool:
    """Write the rows of all tasks in one transaction; False without rows or if written before.

    Without an application no version is stored: a second call writes the rows again.

    Raises:
        KafkaError: the rows are not written. After TimedOut the outcome is unknown, and the call
            may be repeated.
        ValueError: a row has no topic. Nothing is written.
    """
    messages = [each for each in messages if each.count]
    if not messages:
        return False
    application, version = messages[0].application, messages[0].version
    group = f"{options.producer['transactional.id']}-{application}"
    now_ms = real_runtime().clock.wall_ms()
    with Producer(None, options.producer) as producer:
        producer.init_transactions()
        # Ask only after `init_transactions` has fenced older committers, which could still write.
        if application and version < _next_version(options, group):
            return False
        with producer.transaction() as transaction:
            topics = set()
            for message in messages:
                for batch in pa.ipc.open_stream(message.rows):
                    for topic, some in by_topic(batch, options):
                        send_rows(transaction.send, topic, some, now_ms)
                        topics.add(topic)
            if application:
                done = {TopicPartition(min(topics), 0): version + 1}
                producer.send_offsets_to_transaction(done, ConsumerGroupMetadata(group))
    return True


def _next_version(options: SinkOptions, group: str) -> int:
    """Return the version after the last one written, or 0."""
    settings = {name: text for name, text in options.producer.items() if name in ADMIN}
    with Admin(None, settings) as admin:
        stored = admin.list_group_offsets([group], require_stable=True)[group]
    stored.check()
    return max((each.offset for each in stored.values.values() if each is not None), default=0)
