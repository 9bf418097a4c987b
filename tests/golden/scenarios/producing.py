"""Produce: every version, every batch fault, timestamps, sequences, limits."""

from __future__ import annotations

import struct
import time

import cramjam
import lz4.frame
import zstandard

from tests.golden import batches
from tests.golden.batches import batch, record, records, simple
from tests.golden.requests import make_offsets_topic, make_topic, produce
from tests.golden.run import Run, scenario
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = range(3, 14)
V = 9
MISSING_ID = bytes(range(1, 17))


@scenario
def produce_versions(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    unknown = (run.topic("unknown"), MISSING_ID)
    for version in VERSIONS:
        run.send(produce(topic, version, simple(b"a", b"b")), version, "two records")
        run.send(produce(topic, version, simple(b"c"), acks=1), version, "acks 1")
        run.send(produce(topic, version, simple(b"a"), partition=7), version, "no partition 7")
        run.send(produce(unknown, version, simple(b"a")), version, "unknown topic")
        run.send(produce(topic, version, simple(b"a"), acks=2), version, "acks 2")
        run.send(produce(topic, version, b""), version, "empty record set")
        wrong = simple(b"a", crc=1)
        run.send(produce(topic, version, wrong), version, "wrong crc")
        control = simple(b"a", attributes=0x20)
        run.send(produce(topic, version, control), version, "control batch")


@scenario
def produce_without_answer(run: Run) -> None:
    topic = make_topic(run)
    for version in (3, 7, 9, 12, 13):
        good = produce(topic, version, simple(b"a"), acks=0)
        run.send_unanswered(good, version, "acks 0")
        bad = produce(topic, version, simple(b"a", crc=1), acks=0)
        run.send_unanswered(bad, version, "acks 0, wrong crc")
        lost = produce((run.topic("none"), MISSING_ID), version, simple(b"a"), acks=0)
        run.send_unanswered(lost, version, "acks 0, unknown topic")


@scenario
def produce_batch_faults(run: Run) -> None:
    topic = make_topic(run)
    good = simple(b"value")
    two = simple(b"a", b"b")
    rec = record(b"value")
    faults = {
        "wrong crc": simple(b"value", crc=0),
        "magic 3": simple(b"value", magic=3),
        "magic -1": simple(b"value", magic=-1),
        "base offset 5": simple(b"value", base_offset=5),
        "base offset -1": simple(b"value", base_offset=-1),
        "count 0": batch(b"", count=0),
        "count 0 with a record": batch(rec, count=0, last_offset_delta=0),
        "count -1": batch(rec, count=-1, last_offset_delta=0),
        "count 2 of one record": batch(rec, count=2),
        "count 1 of two records": batch(records(b"a", b"b"), count=1),
        "last offset delta too large": batch(rec, count=1, last_offset_delta=4),
        "last offset delta negative": batch(rec, count=1, last_offset_delta=-2),
        "two batches": two + two,
        "control batch": simple(b"value", attributes=0x20),
        "producer id without sequence": simple(b"value", producer_id=4000, producer_epoch=0),
        "producer id -2": simple(b"value", producer_id=-2),
        "codec 5": simple(b"value", attributes=5),
        "codec 6": simple(b"value", attributes=6),
        "codec 7": simple(b"value", attributes=7),
        "gzip bit, plain bytes": simple(b"value", attributes=1),
        "snappy bit, plain bytes": simple(b"value", attributes=2),
        "lz4 bit, plain bytes": simple(b"value", attributes=3),
        "zstd bit, plain bytes": simple(b"value", attributes=4),
        "gzip bytes, no bit": batch(batches.gzipped(b"value")[61:], count=1),
        "60 bytes": good[:60],
        "16 zero bytes": bytes(16),
        "17 zero bytes": bytes(17),
        "61 zero bytes": bytes(61),
        "cut by one byte": good[:-1],
        "length 13": struct.pack(">qi", 0, 13) + good[12:],
        "length 48": struct.pack(">qi", 0, 48) + good[12:],
        "length one too large": struct.pack(">qi", 0, len(good) - 11) + good[12:],
        "length negative": struct.pack(">qi", 0, -1) + good[12:],
        "two bytes after it": good + b"\x01\x02",
        "17 zero bytes after it": good + bytes(17),
        "61 zero bytes after it": good + bytes(61),
        "half a batch after it": good + good[:40],
        "record length too large": batch(b"\x7e" + rec[1:], count=1),
        "record length negative": batch(b"\x01" + rec[1:], count=1),
        "record length too small": batch(bytes([rec[0] - 2]) + rec[1:], count=1),
        "bytes after the last record": batch(rec + b"\x00", count=1),
        "bytes inside the record": batch(record(b"value", tail=b"\x00"), count=1),
        "negative header count": batch(record(b"value", header_count=-1), count=1),
        "header count too large": batch(record(b"value", header_count=3), count=1),
        "no record bytes": batch(b"", count=1),
    }
    for note, data in faults.items():
        run.send(produce(topic, V, data), V, note)


@scenario
def produce_batch_oddities(run: Run) -> None:
    topic = make_topic(run)
    odd = {
        "offset deltas with a gap": [record(b"a"), record(b"b", offset_delta=5)],
        "offset deltas falling": [record(b"a", offset_delta=1), record(b"b")],
        "offset deltas equal": [record(b"a"), record(b"b")],
        "offset deltas from 1": [record(b"a", offset_delta=1), record(b"b", offset_delta=2)],
        "offset delta negative": [record(b"a", offset_delta=-1), record(b"b", offset_delta=1)],
        "record attributes": [record(b"a", attributes=7), record(b"b", offset_delta=1)],
    }
    for note, rows in odd.items():
        run.send(produce(topic, V, batch(b"".join(rows), count=2)), V, note)
    header = batch(record(b"a", headers=[(b"\xff\xfe", None), (b"", b"")]), count=1)
    run.send(produce(topic, V, header), V, "header key not UTF-8")
    run.send(produce(topic, V, simple(b"a", attributes=0x40)), V, "delete horizon bit")
    run.send(produce(topic, V, simple(b"a", attributes=0x80)), V, "attribute bit 7")
    run.send(produce(topic, V, simple(b"a", max_timestamp=5)), V, "wrong max timestamp")
    run.send(produce(topic, V, simple(b"a", leader_epoch=9)), V, "leader epoch 9")
    run.send(produce(topic, V, simple(None, None)), V, "null values")
    run.send(produce(topic, V, simple(b"", key=b"")), V, "empty key and value")
    twice = produce(topic, V, simple(b"a"), simple(b"b"))
    run.send(twice, V, "the same partition twice")
    from tests.golden.requests import fetch

    run.send(fetch(topic, 12), 12, "everything that was stored")


@scenario
def produce_codecs(run: Run) -> None:
    topic = make_topic(run)
    body = records(b"kafka" * 10, b"", None)
    snappy_block = bytes(cramjam.snappy.compress_raw(body))
    xerial = bytes.fromhex("82534e41505059000000000100000001")
    xerial += struct.pack(">i", len(snappy_block)) + snappy_block
    lz4_frame = lz4.frame.compress(
        body, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    legacy_lz4 = lz4_frame[:6] + bytes([lz4_frame[6] ^ 0xFF]) + lz4_frame[7:]
    zstd = zstandard.ZstdCompressor().compress(body)
    payloads = {
        "gzip": (1, batches.gzip.compress(body, mtime=0)),
        "snappy, xerial": (2, xerial),
        "snappy, raw block": (2, snappy_block),
        "lz4": (3, lz4_frame),
        "lz4, header checksum broken": (3, legacy_lz4),
        "zstd": (4, zstd),
        "gzip cut": (1, batches.gzip.compress(body, mtime=0)[:-9]),
        "zstd cut": (4, zstd[:-2]),
        "lz4 cut": (3, lz4_frame[:-6]),
    }
    for note, (codec, data) in payloads.items():
        packed = batch(data, count=3, attributes=codec)
        for version in (3, 6, 7, 9, 13):
            run.send(produce(topic, version, packed), version, note)
    miscounted = batch(payloads["gzip"][1], count=2, attributes=1)
    run.send(produce(topic, V, miscounted), V, "gzip, count too small")
    odd = {"with a gap": (0, 4), "equal": (0, 0), "falling": (1, 0), "from 1": (1, 2)}
    for note, (first, second) in odd.items():
        rows = record(b"a", offset_delta=first) + record(b"b", offset_delta=second)
        packed = batch(batches.gzip.compress(rows, mtime=0), count=2, attributes=1)
        run.send(produce(topic, V, packed), V, f"gzip, offset deltas {note}")


@scenario
def produce_recompressed(run: Run) -> None:
    for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = make_topic(run, codec, compression_type=codec)
        plain = batch(
            record(b"a") + record(b"b", offset_delta=1, timestamp_delta=5), count=2,
            max_timestamp=batches.BASE_TIMESTAMP + 5,
        )  # fmt: skip
        run.send(produce(topic, V, plain), V, f"plain into {codec}")
        run.send(produce(topic, V, batches.gzipped(b"a", b"b")), V, f"gzip into {codec}")
        gap = batch(record(b"a") + record(b"b", offset_delta=4), count=2)
        run.send(produce(topic, V, gap), V, f"plain with a gap into {codec}")
        from tests.golden.requests import fetch, list_offsets

        run.send(list_offsets(topic[0], -1, -3), 7, f"offsets of {codec}")
        if codec == "uncompressed":
            run.send(fetch(topic, 12), 12, f"what is stored as {codec}")


@scenario
def produce_timestamps(run: Run) -> None:
    create = make_topic(run, "create")
    append = make_topic(run, "append", message_timestamp_type="LogAppendTime")
    strict = make_topic(run, "strict", message_timestamp_before_max_ms="60000",
                        message_timestamp_after_max_ms="60000")  # fmt: skip
    now = int(time.time() * 1000)
    for version in (3, 7, 8, 9, 13):
        ahead = simple(b"a", base_timestamp=now + 7_200_000)
        run.send(produce(create, version, ahead), version, "two hours ahead")
        run.send(produce(create, version, simple(b"a", base_timestamp=0)), version, "year 1970")
        unset = simple(b"a", base_timestamp=-1)
        run.send(produce(create, version, unset), version, "timestamp -1")
        run.send(produce(create, version, simple(b"a", base_timestamp=-5)), version, "timestamp -5")
        log_append = simple(b"a", attributes=8)
        run.send(produce(create, version, log_append), version, "LogAppendTime bit on CreateTime")
        run.send(produce(append, version, log_append), version, "LogAppendTime bit")
        run.send(produce(append, version, simple(b"a", b"b")), version, "LogAppendTime topic")
        run.send(produce(strict, version, simple(b"a")), version, "too old")
        mixed = batch(
            record(b"a", timestamp_delta=now - batches.BASE_TIMESTAMP)
            + record(b"b", offset_delta=1)
            + record(b"c", offset_delta=2, timestamp_delta=1),
            count=3, max_timestamp=now,
        )  # fmt: skip
        run.send(produce(strict, version, mixed), version, "second and third too old")
        run.send(produce(strict, version, unset), version, "timestamp -1, strict topic")


@scenario
def produce_limits(run: Run) -> None:
    small = make_topic(run, "small", max_message_bytes="200")
    compacted = make_topic(run, "compacted", cleanup_policy="compact")
    segment = make_topic(run, "segment", segment_bytes="1048576", max_message_bytes="3000000")
    two_isr = make_topic(run, "isr", min_insync_replicas="2")
    for version in (3, 8, 9, 13):
        run.send(produce(small, version, simple(b"x" * 200)), version, "too large")
        fits = simple(b"x" * (200 - len(simple(b"")) - 2))
        run.send(produce(small, version, fits), version, "just fits")
        run.send(produce(compacted, version, simple(b"a")), version, "null key, compacted")
        rows = record(b"a", key=b"k") + record(b"b", offset_delta=1)
        run.send(produce(compacted, version, batch(rows, count=2)), version, "second key null")
        run.send(produce(compacted, version, simple(b"a", key=b"k")), version, "key")
        run.send(produce(compacted, version, simple(None, key=b"k")), version, "tombstone")
        large = simple(b"x" * 1_100_000)
        run.send(produce(segment, version, large), version, "larger than a segment")
        run.send(produce(two_isr, version, simple(b"a")), version, "min.insync.replicas 2 of 1")


@scenario
def produce_names(run: Run) -> None:
    make_offsets_topic(run)
    for name in ("", ".", "..", "a b", "x" * 250, "__consumer_offsets", "__transaction_state"):
        run.send(produce((name, MISSING_ID), V, simple(b"a")), V, f"topic {name[:20]!r}")
    run.send(produce(("", bytes(16)), 13, simple(b"a")), 13, "zero topic id")
    empty = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[])
    run.send(empty, V, "no topics")
    topic = make_topic(run)
    bare = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic[0], partition_data=[])]
    )
    run.send(bare, V, "no partitions")
    negative = PartitionProduceData(index=-1, records=simple(b"a"))
    request = ProduceRequest(
        acks=-1, timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic[0], partition_data=[negative])],
    )  # fmt: skip
    run.send(request, V, "partition -1")


def _sequenced(producer: int, sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    values = [b"s%d" % (sequence + i) for i in range(count)]
    return simple(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def _producer(run: Run) -> int:
    answer = run.setup(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4)
    run.normal.learn(answer.producer_id, "the producer", "producer")
    return int(answer.producer_id)


@scenario
def produce_sequences(run: Run) -> None:
    for version in (3, 8, 9, 11, 12, 13):
        topic = make_topic(run, f"v{version}")
        producer = _producer(run)
        steps: list[tuple[str, bytes]] = [
            ("first", _sequenced(producer, 0)),
            ("duplicate of the first", _sequenced(producer, 0)),
            ("next two", _sequenced(producer, 1, 2)),
            ("gap", _sequenced(producer, 9)),
            ("half a duplicate", _sequenced(producer, 1)),
            ("duplicate of two", _sequenced(producer, 1, 2)),
            ("next", _sequenced(producer, 3)),
            ("next", _sequenced(producer, 4)),
            ("next", _sequenced(producer, 5)),
            ("next", _sequenced(producer, 6)),
            ("the five newest are known", _sequenced(producer, 1, 2)),
            ("the first is forgotten", _sequenced(producer, 0)),
            ("new epoch, not from 0", _sequenced(producer, 7, epoch=1)),
            ("new epoch from 0", _sequenced(producer, 0, epoch=1)),
            ("old epoch", _sequenced(producer, 7, epoch=0)),
            ("another producer from 0", _sequenced(producer + 100_000, 0)),
            ("an unknown producer from 5", _sequenced(producer + 200_000, 5)),
        ]
        for note, data in steps:
            run.send(produce(topic, version, data), version, note)


@scenario
def produce_sequence_wrap(run: Run) -> None:
    topic = make_topic(run)
    producer = _producer(run)
    last = 2**31 - 1
    run.send(produce(topic, V, _sequenced(producer, last - 1)), V, "starts near the end")
    run.send(produce(topic, V, _sequenced(producer, last)), V, "the last sequence")
    run.send(produce(topic, V, _sequenced(producer, 0)), V, "wraps to 0")
    run.send(produce(topic, V, _sequenced(producer, last)), V, "duplicate over the wrap")


@scenario
def produce_duplicates_after_deletion(run: Run) -> None:
    topic = make_topic(run)
    producer = _producer(run)
    run.send(produce(topic, V, _sequenced(producer, 0, 3)), V, "three records")
    trim = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic[0], partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
            )
        ],
        timeout_ms=5000,
    )
    run.send(trim, 2, "delete them")
    run.send(produce(topic, V, _sequenced(producer, 0, 3)), V, "duplicate of the deleted")
    run.send(produce(topic, V, _sequenced(producer, 3)), V, "next")


@scenario
def produce_transactional_ids(run: Run) -> None:
    topic = make_topic(run)
    marked = simple(b"a", attributes=0x10, producer_id=4000, producer_epoch=0, base_sequence=0)
    for version in (3, 9, 12, 13):
        run.send(produce(topic, version, marked), version, "transactional batch, null id")
        plain = produce(topic, version, simple(b"a"), transactional_id=run.topic("tx"))
        run.send(plain, version, "transactional request, plain batch")
