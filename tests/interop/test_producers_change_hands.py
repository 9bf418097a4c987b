"""A broker continues the idempotent producers of a log that another one has closed.

Apache Kafka keeps one batch of each producer, embedlog five; each opens the snapshots of the other.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.golden.requests import Topic, creation, produce
from tests.golden.run import Run
from tests.interop.test_open_transactions_change_hands import Side, hand_over, topic_ids
from tests.support.tools import need_jars
from wire.records.encode.builder import build_batch

pytestmark = [pytest.mark.interop, pytest.mark.slow]

OUT_OF_ORDER = 45
PRODUCER_ID = 7
COUNT = 8


def send(run: Run, topic: Topic, sequence: int, *values: bytes) -> tuple[int, int]:
    """Produce a batch of the producer; return (error code, offset)."""
    data = build_batch(
        list(values),
        timestamps=time.time_ns() // 1_000_000,
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=sequence,
    )
    answer = run.until(lambda _: True, produce(topic, 9, data), 9, keep=False)
    (partition,) = answer.responses[0].partition_responses
    return partition.error_code, partition.base_offset


def make_topic(run: Run) -> Topic:
    """Create the topic."""
    (made,) = run.setup(creation("events", partitions=1), 7).topics
    return made.name, made.topic_id


def keep_marker(side: Side) -> dict[Path, bytes]:
    """Return the files that tell that the side's directory was closed."""
    names = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
    return {side.data / name: (side.data / name).read_bytes() for name in names}


@pytest.mark.parametrize("writer", ["embedlog", "kafka"])
def test_another_broker_knows_the_last_batch_of_each_producer(tmp_path: Path, writer: str) -> None:
    need_jars("broker")
    ours, kafkas = Side("embedlog", tmp_path / "embedlog"), Side("kafka", tmp_path / "kafka")
    first, second = (ours, kafkas) if writer == "embedlog" else (kafkas, ours)
    for side in (first, second):
        side.data.mkdir(parents=True)
    with second.running() as run:
        make_topic(run)
        ids = topic_ids(run)
    closed = keep_marker(second)
    with first.running() as run:
        topic = make_topic(run)
        filler = build_batch([b"." * 70_000], timestamps=time.time_ns() // 1_000_000)
        run.setup(produce(topic, 9, filler), 9)
        sent = [send(run, topic, 2 * number, b"a", b"b") for number in range(COUNT)]
        assert [error for error, _ in sent] == [0] * COUNT
    assert list((first.data / "events-0").glob("*.snapshot"))
    hand_over(first, second, ids, least=1)
    for path, content in closed.items():
        path.write_bytes(content)
    with second.running() as run:
        last = 2 * (COUNT - 1)
        assert send(run, topic, last, b"a", b"b") == (0, sent[-1][1])
        for number in range(COUNT - 1):
            assert send(run, topic, 2 * number, b"a", b"b")[0] == OUT_OF_ORDER
        assert send(run, topic, last + 2, b"a", b"b") == (0, sent[-1][1] + 2)
