"""Over the wire with `kafka.transactional.id`: all rows of a batch in one transaction.

    task         gives its rows to the committer, in its message: it sends nothing
    committer    takes the transactional id: whoever had it is fenced, what it left open is aborted
                 asks the group which version comes next: a version before that is done, and left
                 sends all rows and commits `version + 1` for the group, in one transaction

The group is `<transactional.id>-<application>`, of a stream `<transactional.id>-<query id>`. The
version is stored as the offset of partition 0 of the batch's first topic by name, because a broker
stores offsets of topics that it has; the largest one of the group counts. So the rows and the word
that they are written are there together, or neither is, and a batch may be cut into other tasks
when it is replayed. Transactions of the tasks themselves could not promise that: they end one by
one, and a driver that dies in between would replay rows that count already.

What it costs: the rows of a batch go through the driver, compressed. spark.driver.maxResultSize
limits them, and transaction.timeout.ms the time to send them. Offsets of a group that nobody uses
expire after the broker's offsets.retention.minutes (a week): a batch that is replayed later than
that is written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from embedlog.client.admin.admin import Admin
from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
from embedlog.client.producer.producer import Producer
from embedlog.client.settings import ADMIN
from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.sink.options import COLUMNS
from embedlog.spark.sink.rows import by_topic
from embedlog.spark.sink.task import send_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from embedlog.spark.sink.options import SinkOptions


@dataclass
class RowsMessage(WriterCommitMessage):
    """What a task tells the committer: whose commit it is for, and its rows.

    `rows` is an Arrow stream of `count` rows, empty when there are none.
    """

    application: str
    version: int
    count: int
    rows: bytes


def pack(batches: Iterable[pa.RecordBatch]) -> tuple[int, bytes]:
    """The rows of a task, and how many; only the columns of a record, compressed."""
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
    """Write the rows of all tasks in one transaction; False when that version was written before.

    Without an application nothing is remembered: the rows are written, together.

    Raises:
        KafkaError: they are not written, or (TimedOut) nobody knows: the same call again will.
        ValueError: a row without a topic. Nothing is written.
    """
    messages = [each for each in messages if each.count]
    if not messages:
        return False
    application, version = messages[0].application, messages[0].version
    group = f"{options.producer['transactional.id']}-{application}"
    now_ms = real_runtime().clock.wall_ms()
    with Producer(None, options.producer) as producer:
        producer.init_transactions()
        # Not before: an older committer may still have been at it.
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
    """The version that comes after the last one written, 0 when there is none."""
    settings = {name: text for name, text in options.producer.items() if name in ADMIN}
    with Admin(None, settings) as admin:
        stored = admin.list_group_offsets([group], require_stable=True)[group]
    stored.check()
    return max((each.offset for each in stored.values.values() if each is not None), default=0)
