"""Compaction compared with Apache Kafka's, and its results read by foreign clients and tools.

The reference is a real broker's cleaner. Each history is written to a topic of a real broker, stage
by stage; its batches, byte for byte, go into a log of ours. Then both are cleaned, and the files
must have the same content: every batch with its header and its records, its segment, and the
aborted transactions that readers get.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

import embedlog
from embedlog.storage.replica.append import append_as_follower
from tests.interop.java_tools import run
from tests.server.wire_client import WireClient
from tests.storage.cleaner.compaction import Compacted, check_compacted, committed_rows
from tests.support.kafka import real_kafka
from wire.error_codes import ErrorCode
from wire.records.batch import RecordBatch, iter_batches
from wire.records.encode.builder import build_batch
from wire.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS_MAX = 30
SEGMENT_MS = 1000
RETENTION_MS = 2000
NO_LEADER_YET = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

Pairs = list[tuple[bytes | None, bytes | None]]


class Kafka:
    """A real broker whose cleaner runs on request."""

    def __init__(self, address: str, directory: Path) -> None:
        self.address = address
        self.data = directory / "data"
        host, port = address.split(":")
        self.wire = WireClient((host, int(port)))
        self.admin = AdminClient({"bootstrap.servers": address})


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    directory = tmp_path_factory.mktemp("kafka")
    with real_kafka(directory, settings={"log.cleaner.backoff.ms": "100"}) as address:
        yield Kafka(address, directory)


class Topic:
    """One partition at Kafka and its twin here. The time of the records rolls segments."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.kafka = kafka
        self.name = name
        settings = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "1.0",
            "segment.ms": str(SEGMENT_MS),
            "delete.retention.ms": str(RETENTION_MS),
            "index.interval.bytes": "200",
        }
        made = kafka.admin.create_topics([NewTopic(name, 1, 1, config=settings)])
        made[name].result(SECONDS_MAX)
        _await_leader(kafka.wire, name)
        self.directory = kafka.data / f"{name}-0"
        # Ahead of the clock, so that transaction markers, which carry the present time, roll
        # nothing.
        self.time_ms = int(time.time() * 1000) + 600_000
        self._horizons: set[int | None] = set()
        self.ours = Compacted(
            segment_bytes=1 << 30,
            segment_ms=SEGMENT_MS,
            delete_retention_ms=RETENTION_MS,
            index_interval_bytes=200,
        )

    def put(self, pairs: Pairs, *, producer: tuple[int, int, int] = (-1, -1, -1), codec: int = 0):
        """Append one batch of (key, value)."""
        producer_id, producer_epoch, base_sequence = producer
        records = build_batch(
            [value for _, value in pairs],
            keys=[key for key, _ in pairs],
            timestamps=[self.time_ms + number for number in range(len(pairs))],
            headers=[(("h", b"x"),) if number % 2 else None for number in range(len(pairs))],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            codec=codec,
        )
        data = TopicProduceData(
            name=self.name, partition_data=[PartitionProduceData(index=0, records=records)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        (topic,) = self.kafka.wire.ask(request, 12).responses
        assert topic.partition_responses[0].error_code == 0, topic

    def roll(self) -> None:
        """Let the next record begin a segment."""
        self.time_ms += SEGMENT_MS + 1000

    def clean(self) -> None:
        """Clean both logs, up to a segment with one last record, and compare."""
        self.roll()
        self.put([(b"last", b"last")])
        self._follow()
        self._set_ratio("0.0")
        end = max(self._kafkas_segments())
        checkpoint = self.kafka.data / "cleaner-offset-checkpoint"
        _until(lambda: f"{self.name} 0 {end}\n" in _text(checkpoint))
        self._set_ratio("1.0")
        clock = self.ours.runtime.clock
        clock.advance(max(0, self._cleaned_ms(checkpoint) - clock.wall_ms()))
        self.ours.clean_at_once()
        check_compacted(self.ours.log)
        self.compare()

    def _cleaned_ms(self, checkpoint: Path) -> int:
        """Return when Kafka cleaned: from a delete horizon, or the time of its checkpoint."""
        batches = (one for each in self._kafkas_segments().values() for one in iter_batches(each))
        horizons = {one.delete_horizon_ms for one in batches if isinstance(one, RecordBatch)}
        marked = [each for each in horizons - self._horizons if each is not None]
        self._horizons |= horizons
        return max(marked) - RETENTION_MS if marked else int(checkpoint.stat().st_mtime * 1000)

    def compare(self) -> None:
        """Check that the files hold the same batches, in segments of the same offsets."""
        ours = {segment.base_offset: segment for segment in self.ours.log.segments}
        theirs = self._kafkas_segments()
        assert sorted(ours) == sorted(theirs)
        for base_offset, content in theirs.items():
            segment = ours[base_offset]
            found = [*iter_batches(segment.file.view(0, segment.size))]
            assert list(map(_facts, found)) == list(map(_facts, iter_batches(content)))
            aborted = self.directory / f"{base_offset:020d}.txnindex"
            told = self.ours.log.transactions.aborted(base_offset, segment.next_offset)
            mine = {one for one in told if base_offset <= one.last_offset < segment.next_offset}
            assert len(mine) * 34 == (aborted.stat().st_size if aborted.exists() else 0)

    def marker_count(self) -> int:
        """Return the number of control batches in Kafka's files."""
        contents = self._kafkas_segments().values()
        return sum(one.is_control for content in contents for one in iter_batches(content))

    def sleep(self, delay_ms: int) -> None:
        """Let time pass for both logs."""
        time.sleep(delay_ms / 1000)

    def _follow(self) -> None:
        """Append the batches that Kafka has and our log lacks."""
        log = self.ours.log
        for _, content in sorted(self._kafkas_segments().items()):
            for one in iter_batches(content):
                if one.base_offset >= log.log_end_offset:
                    append_as_follower(log, bytes(one.buffer), now_ms=self.time_ms)
        self.ours.commit()

    def _kafkas_segments(self) -> dict[int, bytes]:
        """Return the segments by base offset, read while Kafka removes no file."""
        while True:
            try:
                return {int(path.stem): path.read_bytes() for path in self.directory.glob("*.log")}
            except FileNotFoundError:
                continue  # the cleaner swapped a segment after it was listed

    def _set_ratio(self, ratio: str) -> None:
        entry = ConfigEntry(
            "min.cleanable.dirty.ratio", ratio, incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, self.name, incremental_configs=[entry])
        for done in self.kafka.admin.incremental_alter_configs([resource]).values():
            done.result(SECONDS_MAX)
        time.sleep(0.3)  # until the broker's log has the setting, which no answer shows


def _facts(one: Any) -> tuple[object, ...]:
    """Return all fields of a batch, except its delete horizon and the base timestamp below it."""
    assert isinstance(one, RecordBatch)
    assert one.is_valid_crc()
    return (
        (one.base_offset, one.last_offset, one.partition_leader_epoch, one.attributes),
        (one.producer_id, one.producer_epoch, one.base_sequence),
        (
            one.record_count,
            one.max_timestamp,
            None if one.has_delete_horizon else one.base_timestamp,
        ),
        [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in one.records()],
    )


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _await_leader(wire: WireClient, topic: str) -> None:
    """Wait until the broker leads partition 0, which follows the topic's creation."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )

    def is_led() -> bool:
        (answered,) = wire.ask(request, 5).topics
        error_code = answered.partitions[0].error_code
        assert error_code == 0 or error_code in NO_LEADER_YET, answered
        return error_code == 0

    _until(is_led)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_same_records_of_plain_batches_remain_with_every_codec(kafka: Kafka) -> None:
    topic = Topic(kafka, "plain")
    for number in range(40):
        pairs = [(b"k%d" % ((number * 3 + n) % 17), b"v%d-%d" % (number, n)) for n in range(5)]
        topic.put(pairs, codec=number % 5)
        if number % 6 == 5:
            topic.roll()
    topic.clean()
    for number in range(20):
        topic.put([(b"k%d" % (number % 8), b"w" * number), (b"solo%d" % number, b"x")])
        if number % 7 == 6:
            topic.roll()
    topic.clean()
    assert len(topic.ours.log.segments) == 2


def test_large_batches_and_keys_of_any_length(kafka: Kafka) -> None:
    topic = Topic(kafka, "large")
    for number in range(6):
        pairs = [(b"%d" % (n * n % 911), b"v" * ((n + number) % 300)) for n in range(800)]
        topic.put([*pairs, (b"", b"empty key"), (b"empty value", b"")], codec=4 * (number % 2))
        topic.roll()
    topic.clean()


def test_tombstones_remain_for_their_retention_time(kafka: Kafka) -> None:
    topic = Topic(kafka, "tombstones")
    topic.put([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    topic.put([(b"a", None), (b"b", b"2"), (b"d", None)])
    topic.roll()
    topic.put([(b"e", None)], codec=3)
    topic.put([(b"e", b"back")])
    topic.put([(b"f", None)])
    topic.clean()
    topic.put([(b"b", None), (b"d", b"new")])
    topic.clean()
    topic.sleep(RETENTION_MS + 500)
    topic.put([(b"g", b"1")])
    topic.clean()
    topic.sleep(RETENTION_MS + 500)
    topic.put([(b"g", None)])
    topic.clean()


def test_the_last_batches_of_producers_remain_as_headers(kafka: Kafka) -> None:
    topic = Topic(kafka, "producers")
    for number in range(6):
        topic.put([(b"k", b"%d" % number)], producer=(8000 + number % 2, 0, number // 2))
    topic.put([(b"x", b"1"), (b"k", b"y")], producer=(8002, 0, 0), codec=2)
    topic.roll()
    topic.put([(b"k", b"after"), (b"x", b"after")])
    topic.clean()
    topic.put([(b"k", b"z")], producer=(8000, 1, 0))
    topic.roll()
    topic.put([(b"k", b"end")])
    topic.clean()


def test_aborted_batches_and_markers(kafka: Kafka) -> None:
    topic = Topic(kafka, "transactions")
    producers = []
    for number in range(3):
        producer = Producer(
            {"bootstrap.servers": kafka.address, "transactional.id": f"t{number}", "linger.ms": 0}
        )
        producer.init_transactions(SECONDS_MAX)
        producers.append(producer)

    def transact(number: int, keys: list[bytes], *, commit: bool) -> None:
        producer = producers[number]
        producer.begin_transaction()
        for key in keys:
            producer.produce("transactions", b"by %d" % number, key, 0, timestamp=topic.time_ms)
            producer.flush(SECONDS_MAX)
        before = topic.marker_count()
        (producer.commit_transaction if commit else producer.abort_transaction)(SECONDS_MAX)
        # The client learns of the end before the partition does.
        _until(lambda: topic.marker_count() > before)

    for stage in range(5):
        topic.put([(b"a", b"plain"), (b"b", b"plain")])
        transact(0, [b"a", b"c"], commit=stage % 2 == 0)
        transact(1, [b"a", b"b", b"c"], commit=False)
        topic.roll()
        transact(2, [b"only once %d" % stage, b"c"], commit=stage < 2)
        transact(0, [b"c"], commit=True)
        if stage < 3:
            transact(1, [b"d"], commit=True)
        topic.clean()
        known = {key for _, key, _ in committed_rows(topic.ours.log)}
        assert b"only once 0" in known
        assert b"only once 3" not in known
        topic.sleep(RETENTION_MS + 500 if stage % 2 else 0)


def test_the_last_batch_of_a_round_remains_when_it_is_emptied(kafka: Kafka) -> None:
    topic = Topic(kafka, "ends")
    topic.put([(b"a", b"1"), (b"b", b"1")])
    topic.put([(b"c", None)])
    topic.put([(b"c", b"2")])
    topic.roll()
    topic.put([(b"a", b"2")])
    topic.put([(b"last", b"1"), (b"last", b"2")])
    topic.clean()
    for _ in range(3):
        topic.clean()


# Cleaned files, read by others


def test_kafkas_dump_tool_finds_nothing_wrong_with_cleaned_files(
    kafka: Kafka, tmp_path: Path
) -> None:
    topic = Topic(kafka, "dumped")
    for number in range(300):
        pairs = [
            (b"k%d" % ((number + n) % 120), None if number % 9 == 8 else b"v" * 60)
            for n in range(3)
        ]
        topic.put(pairs, codec=number % 5, producer=(8100 + number % 3, 0, number // 3 * 3))
        if number % 60 == 59:
            topic.roll()
    topic.clean()
    log = topic.ours.log
    suffixes = (".log", ".index", ".timeindex", ".snapshot")
    for name in log.files.list(log.directory):
        if name.endswith(suffixes) and int(name[:20]) < log.segments[-1].base_offset:
            (tmp_path / name).write_bytes(log.files.read(f"{log.directory}/{name}"))
    files = sorted(str(path) for path in tmp_path.iterdir())
    assert any(path.endswith(".index") for path in files)
    out = run("dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(files))
    assert out.count("| offset: ") == sum(
        one.record_count for s in log.segments[:-1] for one in iter_batches(s.file.view(0, s.size))
    )
    for complaint in ("Mismatches", "mismatch", "not found", "should be", "isvalid: false"):
        assert complaint not in out
    indexes = [path for path in files if path.endswith("index")]
    sane = run("dump-log", "--index-sanity-check", "--files", ",".join(indexes))
    assert sane.count("passed sanity check") == len(indexes)


@pytest.fixture
def compacted(tmp_path: Path) -> Iterator[tuple[str, list[tuple[int, bytes, bytes]]]]:
    """Yield the address of our broker with the cleaned topic "c", and the topic's remaining
    records.

    There are gaps between batches, inside them and at their ends, and the topic's last batch has no
    records.
    """
    settings = {"log.cleaner.backoff.ms": 50}
    with embedlog.open(tmp_path / "data", config=settings) as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        configs = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "segment.ms": str(SEGMENT_MS),
            "delete.retention.ms": "0",
        }
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("c", 1, 1, config=configs)])["c"].result(SECONDS_MAX)
        host, port = address.split(":")
        left = []
        with WireClient((host, int(port))) as wire:
            _await_leader(wire, "c")
            log = cluster.broker().core.log_manager.get(embedlog.TopicPartition("c", 0))
            assert log is not None
            for number in range(60):
                # The last record of every batch is replaced by one in the next batch.
                pairs = [(b"a%d" % number, b"v"), (b"b%d" % (number % 20), b"v"), (b"k", b"v")]
                _produce(wire, [(key, value + b"%d" % number) for key, value in pairs])
            _produce(wire, [(b"gone", None)])
        left = [(3 * n, b"a%d" % n, b"v%d" % n) for n in range(60)]
        left += [(3 * n + 1, b"b%d" % (n % 20), b"v%d" % n) for n in range(40, 60)]
        left.append((179, b"k", b"v59"))
        for _ in range(2):  # the second round removes the tombstone
            with log.lock:
                log.roll()
            log.offsets.cleaned_offset = min(log.offsets.cleaned_offset, 0)
            cluster.broker().core.log_manager.tasks.stir()
            _until(lambda: log.offsets.cleaned_offset == 181)
        yield address, sorted(left)


def _produce(wire: WireClient, pairs: Pairs) -> None:
    records = build_batch(
        [value for _, value in pairs],
        keys=[key for key, _ in pairs],
        timestamps=int(time.time() * 1000),
    )
    data = TopicProduceData(
        name="c", partition_data=[PartitionProduceData(index=0, records=records)]
    )
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    (topic,) = wire.ask(request, 9).responses
    assert topic.partition_responses[0].error_code == 0, topic


def test_confluent_kafka_reads_a_compacted_topic_to_its_end(
    compacted: tuple[str, list[tuple[int, bytes, bytes]]],
) -> None:
    address, left = compacted
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition("c", 0, OFFSET_BEGINNING)])
    found = []
    try:
        while True:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                assert message.offset() == 181
                break
            found.append((message.offset(), message.key(), message.value()))
        assert consumer.position([TopicPartition("c", 0)])[0].offset == 180
    finally:
        consumer.close()
    assert found == left


def test_aiokafka_reads_a_compacted_topic_to_its_end(
    compacted: tuple[str, list[tuple[int, bytes, bytes]]],
) -> None:
    import asyncio

    import aiokafka

    address, left = compacted

    async def read() -> list[tuple[int, bytes, bytes]]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, group_id=None)
        await consumer.start()
        where = aiokafka.TopicPartition("c", 0)
        found = []
        try:
            consumer.assign([where])
            await consumer.seek_to_beginning(where)
            while await consumer.position(where) < 181:
                fetched = await consumer.getmany(where, timeout_ms=2000)
                found += [(m.offset, m.key, m.value) for some in fetched.values() for m in some]
                if len(found) == len(left) and not fetched:
                    break
        finally:
            await consumer.stop()
        return found

    assert asyncio.run(read()) == left


def test_our_consumer_reads_a_compacted_topic_to_its_end(
    compacted: tuple[str, list[tuple[int, bytes, bytes]]],
) -> None:
    address, left = compacted
    with embedlog.Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([embedlog.TopicPartition("c", 0)])
        found: list[tuple[int, bytes, bytes]] = []
        deadline = time.monotonic() + SECONDS_MAX
        while consumer.position(embedlog.TopicPartition("c", 0)) < 181:
            assert time.monotonic() < deadline
            found += [(r.offset, r.key, r.value) for r in consumer.poll(100)]
    assert found == left
