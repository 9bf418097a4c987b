"""The validator: Kafka's code for every fault of a produced batch; changed and kept batches."""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.storage.log_config import NO_LIMIT, LogConfig
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.validated_batch import ValidatedBatch
from embedlog.storage.validation.validator import validate
from wire.records.batch import RecordBatch
from wire.records.compression import compress
from wire.records.crc32c import crc32c
from wire.records.encode.builder import build_batch
from wire.records.format import HEADER_SIZE, Codec
from wire.records.legacy import encode_message, encode_wrapper
from wire.records.record import Record
from wire.records.varint import encode_varint

NOW = 1_700_000_000_000
HOUR = 3_600_000
LOG_START = 42
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]

# Header fields: position and struct format.
BASE_OFFSET = (0, ">q")
LENGTH = (8, ">i")
MAGIC = (16, ">b")
CRC = (17, ">I")
ATTRIBUTES = (21, ">h")
LAST_OFFSET_DELTA = (23, ">i")
BASE_TIMESTAMP = (27, ">q")
MAX_TIMESTAMP = (35, ">q")
PRODUCER_ID = (43, ">q")
PRODUCER_EPOCH = (51, ">h")
BASE_SEQUENCE = (53, ">i")
RECORD_COUNT = (57, ">i")


def check(records, *, origin=AppendOrigin.CLIENT, now_ms=NOW, magic_limits=(2, 2), **config):
    return validate(
        records,
        config=LogConfig(**config),
        origin=origin,
        now_ms=now_ms,
        magic_limits=magic_limits,
        log_start_offset=LOG_START,
        topic_partition=TopicPartition("topic", 3),
    )


def refused(code: int, records, *, log_start: bool, **kwargs) -> errors.KafkaError:
    """The error, of this code, with or without the log start offset."""
    with pytest.raises(errors.KafkaError) as caught:
        check(records, **kwargs)
    assert caught.value.code == code, caught.value
    assert caught.value.log_start_offset == (LOG_START if log_start else -1)
    return caught.value


def good(count: int = 3, **kwargs) -> bytes:
    kwargs.setdefault("timestamps", [NOW + slot for slot in range(count)])
    kwargs.setdefault("keys", [b"k%d" % slot for slot in range(count)])
    return build_batch([b"value %d" % slot for slot in range(count)], **kwargs)


def sealed(batch: bytes | bytearray) -> bytes:
    """The batch with a length and a checksum that fit."""
    made = bytearray(batch)
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">I", made, 17, crc32c(made[21:]))
    return bytes(made)


def changed(batch: bytes, *fields: tuple[tuple[int, str], int], seal: bool = True) -> bytes:
    made = bytearray(batch)
    for (position, form), value in fields:
        struct.pack_into(form, made, position, value)
    return sealed(made) if seal else bytes(made)


def with_payload(batch: bytes, payload: bytes) -> bytes:
    return sealed(batch[:HEADER_SIZE] + payload)


def record(
    offset_delta: int,
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    timestamp_delta: int = 0,
    attributes: int = 0,
    headers: bytes = b"\x00",
) -> bytes:
    def field(data: bytes | None) -> bytes:
        return encode_varint(-1) if data is None else encode_varint(len(data)) + data

    body = bytes([attributes]) + encode_varint(timestamp_delta) + encode_varint(offset_delta)
    body += field(key) + field(value) + headers
    return encode_varint(len(body)) + body


def raw(*records: bytes, codec: int = 0) -> bytes:
    """Return a batch of these encoded records, with the right header."""
    count = len(records)
    batch = changed(
        good(1, timestamps=NOW),
        (ATTRIBUTES, codec),
        (LAST_OFFSET_DELTA, count - 1),
        (RECORD_COUNT, count),
    )
    payload = b"".join(records)
    return with_payload(batch, compress(codec, payload) if codec else payload)


def written(validated: ValidatedBatch) -> bytes:
    """Return the batch with the stamp of `build_batch`."""
    return validated.stamped(base_offset=0, leader_epoch=-1)


def stored(validated: ValidatedBatch) -> RecordBatch:
    batch = RecordBatch(written(validated))
    assert batch.is_valid_crc()
    assert batch.size == validated.size
    assert batch.max_timestamp == validated.max_timestamp
    assert batch.last_offset_delta == validated.last_offset_delta
    return batch


# Good batches


def test_a_good_batch_is_neither_changed_nor_copied():
    sent = good()
    validated = check(sent)
    assert written(validated) == sent
    (view,) = validated.checked
    assert view.obj is sent
    assert validated.max_timestamp == NOW + 2
    assert validated.log_append_time_ms == -1


def test_stamping_leaves_the_input_and_the_checksum_alone():
    sent = bytearray(good())
    before = bytes(sent)
    validated = check(sent)
    batch = RecordBatch(validated.stamped(base_offset=77, leader_epoch=5))
    assert batch.is_valid_crc()
    assert (batch.base_offset, batch.partition_leader_epoch) == (77, 5)
    assert bytes(sent) == before


def test_producer_facts_are_taken_over():
    validated = check(good(producer_id=9, producer_epoch=2, base_sequence=4, transactional=True))
    facts = (validated.producer_id, validated.producer_epoch, validated.base_sequence)
    assert facts == (9, 2, 4)
    assert validated.is_transactional
    assert not stored(validated).is_control


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_is_stored_as_it_came(codec):
    sent = good(codec=codec)
    validated = check(sent)
    assert written(validated) == sent
    (view,) = validated.checked
    assert view.obj is sent


# The record set (observed 3, 4)


@pytest.mark.parametrize("size", [0, 1, 11, 12, 16, 17, 30, 60])
def test_a_set_without_a_whole_batch_is_invalid(size):
    refused(87, good()[:size], log_start=False)


def test_a_cut_batch_is_invalid():
    refused(87, good()[:-1], log_start=False)


def test_a_batch_length_beyond_the_set_is_invalid():
    refused(87, changed(good(), (LENGTH, 5000), seal=False), log_start=False)


@pytest.mark.parametrize("length", [0, 13, -1, -(2**31)])
def test_an_impossible_length_is_corrupt(length):
    refused(2, changed(good(), (LENGTH, length), seal=False), log_start=False)


@pytest.mark.parametrize("size", [12, 16, 17, 61])
def test_zero_bytes_are_corrupt(size):
    refused(2, bytes(size), log_start=False)


def test_the_greatest_length_is_an_unknown_server_error():
    refused(-1, changed(good(), (LENGTH, 2**31 - 1), seal=False), log_start=False)


@pytest.mark.parametrize("garbage", [b"ab", bytes(11), good()[:-1], good()[:40]])
def test_incomplete_bytes_after_the_batch_are_trimmed(garbage):
    assert written(check(good() + garbage)) == good()


@pytest.mark.parametrize("size", [12, 17, 61])
def test_zero_bytes_after_the_batch_are_corrupt(size):
    refused(2, good() + bytes(size), log_start=False)


def test_two_batches_are_invalid():
    refused(87, good() + good(), log_start=False)


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_corrupt(magic):
    refused(2, changed(good(), (MAGIC, magic)), log_start=False)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_invalid_since_produce_3(magic):
    refused(87, changed(good(), (MAGIC, magic)), log_start=False)


# The batch


@pytest.mark.parametrize("offset", [1, -1, 2**40])
def test_a_clients_base_offset_must_be_0(offset):
    error = refused(87, changed(good(), (BASE_OFFSET, offset)), log_start=True)
    assert f"should be 0, but it is {offset}" in str(error)
    assert error.record_errors == ()
    check(changed(good(), (BASE_OFFSET, offset)), origin=AppendOrigin.COORDINATOR)


def test_a_batch_larger_than_max_message_bytes_is_refused():
    sent = good()
    check(sent, max_message_bytes=len(sent))
    refused(10, sent, log_start=False, max_message_bytes=len(sent) - 1)


def test_size_comes_before_the_checksum():
    refused(10, changed(good(), (CRC, 0), seal=False), log_start=False, max_message_bytes=50)


def test_base_offset_comes_before_size():
    refused(87, changed(good(), (BASE_OFFSET, 1)), log_start=True, max_message_bytes=50)


def test_a_wrong_checksum_is_corrupt():
    error = refused(2, changed(good(), (CRC, 12345), seal=False), log_start=False)
    assert "stored crc = 12345" in str(error)
    assert "topic-3" in str(error)


@pytest.mark.parametrize("position", [21, 24, 30, 60, 61, 70])
def test_a_flipped_bit_is_corrupt(position):
    sent = bytearray(good())
    sent[position] ^= 4
    refused(2, sent, log_start=False)


@pytest.mark.parametrize("size", [26, 30, 60])
def test_a_batch_smaller_than_its_header_is_corrupt(size):
    sent = changed(good()[:size], (LENGTH, size - 12), seal=False)
    refused(2, sent, log_start=False)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_an_unknown_server_error(codec):
    refused(-1, changed(good(), (ATTRIBUTES, codec)), log_start=True)


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_that_do_not_decompress_are_an_unknown_server_error(codec):
    refused(-1, changed(good(), (ATTRIBUTES, codec)), log_start=True)


def test_a_cut_gzip_stream_is_an_unknown_server_error():
    sent = good(codec=Codec.GZIP)
    refused(-1, sealed(sent[:-12]), log_start=True)


def test_gzip_bytes_in_a_plain_batch_are_an_invalid_record():
    refused(87, with_payload(good(), gzip.compress(good()[61:])), log_start=True)


def test_an_lz4_frame_with_the_legacy_checksum_is_an_unknown_server_error():
    frame = "04224d1860401a0f0000005f6b61666b61050015506b61666b6100000000"
    sent = changed(good(), (ATTRIBUTES, Codec.LZ4))
    refused(-1, with_payload(sent, bytes.fromhex(frame)), log_start=True)


def test_a_bomb_is_too_large():
    sent = build_batch([bytes(900_000)], timestamps=NOW, codec=Codec.ZSTD)
    check(sent)
    error = refused(10, sent, log_start=False, max_decompressed_message_bytes=1 << 19)
    assert "524288 bytes, which max.decompressed.message.bytes sets" in str(error)
    assert error.told_with_message


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([(LAST_OFFSET_DELTA, -1)], "invalid offset range: [0, -1]"),
        ([(LAST_OFFSET_DELTA, -5), (RECORD_COUNT, -4)], "invalid offset range: [0, -5]"),
        ([(RECORD_COUNT, 0)], "Invalid reported count for record batch: 0"),
        ([(RECORD_COUNT, -1)], "Invalid reported count for record batch: -1"),
        ([(RECORD_COUNT, 2)], "Inconsistent batch offset range [0, 2] and count of records 2"),
        ([(LAST_OFFSET_DELTA, 5)], "Inconsistent batch offset range [0, 5] and count of records 3"),
        ([(ATTRIBUTES, 0x20)], "Clients are not allowed to write control records"),
        ([(PRODUCER_ID, 5)], "Invalid sequence number -1 in record batch with producerId 5"),
        (
            [(PRODUCER_ID, 5), (BASE_SEQUENCE, -7)],
            "Invalid sequence number -7 in record batch with producerId 5",
        ),
    ],
)
def test_a_header_that_contradicts_itself_is_an_invalid_record(fields, text):
    error = refused(87, changed(good(), *fields), log_start=True)
    assert text in str(error)
    assert str(error).endswith("in topic partition topic-3.")
    assert error.record_errors == ()


@pytest.mark.parametrize(
    "fields",
    [
        [(PRODUCER_ID, -2)],
        [(PRODUCER_ID, 5), (PRODUCER_EPOCH, -1), (BASE_SEQUENCE, 0)],
        [(BASE_SEQUENCE, 8)],
        [(ATTRIBUTES, 0x10)],
    ],
)
def test_odd_producers_are_accepted(fields):
    stored(check(changed(good(), *fields)))


@pytest.mark.parametrize("transactional", [False, True])
def test_no_client_ends_a_transaction_by_a_control_batch(transactional):
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    sent = good(1, control=True, transactional=transactional, **producer)
    refused(errors.InvalidRecord.code, sent, log_start=True)


def test_a_coordinator_may_write_control_batches():
    validated = check(good(1, control=True), origin=AppendOrigin.COORDINATOR)
    assert stored(validated).is_control


# Records


@pytest.mark.parametrize("declared", [2, 4])
def test_a_count_that_the_records_do_not_have_is_invalid(declared):
    sent = changed(good(3), (RECORD_COUNT, declared), (LAST_OFFSET_DELTA, declared - 1))
    error = refused(87, sent, log_start=True)
    assert error.record_errors == ()


@pytest.mark.parametrize("codec", [0, *CODECS])
@pytest.mark.parametrize(
    "bad",
    [
        record(0)[:-1],
        record(0) + b"\x00",
        encode_varint(3) + record(0)[1:],
        encode_varint(-1),
        b"\xff" * 6,
        record(0, headers=b"\x01"),  # minus one headers
        record(0, headers=b"\x02"),  # one header, and the record ends
        record(0, headers=b"\x02\x01\x01"),  # a null header key
    ],
)
def test_a_malformed_record_is_invalid(codec, bad):
    refused(87, raw(bad, codec=codec), log_start=True)


@pytest.mark.parametrize(
    "deltas", [(0, 2), (1, 0), (0, 0), (-1, 0), (1, 2), (5, 3), (0, 2**31 - 1)]
)
def test_odd_offset_deltas_of_a_plain_batch_are_stored_as_they_came(deltas):
    sent = raw(*map(record, deltas))
    assert written(check(sent)) == sent


@pytest.mark.parametrize("codec", CODECS)
def test_odd_offset_deltas_of_a_compressed_batch_are_refused(codec):
    sent = raw(record(0, value=b"a"), record(5, value=b"b"), codec=codec)
    refused(-1, sent, log_start=True)


@pytest.mark.parametrize(
    "sent",
    [
        raw(record(0, attributes=0xFF)),
        changed(raw(record(0)), (ATTRIBUTES, 0x7F80)),
        changed(raw(record(0)), (ATTRIBUTES, 0x40)),
        raw(record(0, headers=b"\x02\x04\xff\xfe\x02v")),
    ],
    ids=["record attributes", "attribute bits 7-15", "delete horizon", "header key not UTF-8"],
)
def test_what_kafka_stores_verbatim_is_stored_verbatim(sent):
    assert written(check(sent)) == sent


def test_null_values_and_keys_are_fine_on_a_plain_topic():
    sent = raw(record(0, key=None, value=None))
    assert written(check(sent)) == sent


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete, compact"])
@pytest.mark.parametrize("codec", [0, Codec.LZ4])
def test_a_compacted_topic_needs_keys(policy, codec):
    sent = build_batch([b"a"] * 4, keys=[b"k", None, b"", None], timestamps=NOW, codec=codec)
    error = refused(87, sent, log_start=True, cleanup_policy=policy)
    message = "Compacted topic cannot accept message without key in topic partition topic-3"
    assert error.record_errors == ((1, message), (3, message))
    assert str(error) == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=1, message='{message}'), "
        f"RecordError(batchIndex=3, message='{message}')]"
    )


def test_only_three_record_errors_are_spelled_out():
    sent = build_batch([b"a"] * 5, timestamps=NOW)
    error = refused(87, sent, log_start=True, cleanup_policy="compact")
    assert len(error.record_errors) == 5
    assert str(error).count("batchIndex") == 3


# Timestamps


@pytest.mark.parametrize("codec", [0, Codec.GZIP])
@pytest.mark.parametrize("at", [NOW - 1000, NOW + HOUR, -1])
def test_timestamps_within_the_limits(codec, at):
    sent = good(1, timestamps=at, codec=codec)
    stored(check(sent, message_timestamp_before_max_ms=1000))


@pytest.mark.parametrize("at", [NOW - 1001, NOW + HOUR + 1, 0, -5])
def test_timestamps_beyond_the_limits(at):
    sent = good(3, timestamps=[NOW, at, NOW])
    error = refused(32, sent, log_start=True, message_timestamp_before_max_ms=1000)
    assert str(error) == "One or more records have been rejected due to invalid timestamp"
    assert error.record_errors == (
        (
            1,
            f"Timestamp {at} of message with offset 1 is out of range. The timestamp should be "
            f"within [{NOW - 1000}, {NOW + HOUR}]",
        ),
    )


def test_one_bad_timestamp_among_other_faults_decides_the_code():
    sent = build_batch([b"a"] * 3, keys=[None, b"k", b"k"], timestamps=[NOW, NOW, NOW + 2 * HOUR])
    error = refused(32, sent, log_start=True, cleanup_policy="compact")
    assert [index for index, _ in error.record_errors] == [0, 2]


def test_by_default_the_past_has_no_limit():
    stored(check(good(1, timestamps=0)))
    stored(check(good(1, timestamps=-(2**60)), message_timestamp_before_max_ms=NO_LIMIT))


def test_log_append_time_topics_do_not_look_at_the_sent_timestamps():
    sent = good(2, timestamps=[0, NOW + 9 * HOUR])
    stored(check(sent, message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1))


@pytest.mark.parametrize("wrong", [0, -1, NOW + 10 * HOUR, 2**62])
def test_the_maximum_timestamp_is_always_recomputed(wrong):
    validated = check(changed(good(3, timestamps=[NOW, NOW + 9, NOW + 9]), (MAX_TIMESTAMP, wrong)))
    assert stored(validated).max_timestamp == NOW + 9


@pytest.mark.parametrize("at", [-1, -5, -(2**40)])
def test_negative_timestamps_are_stored_with_maximum_minus_1(at):
    validated = check(good(2, timestamps=at))
    batch = stored(validated)
    assert batch.max_timestamp == -1
    assert [r.timestamp for r in batch.records()] == [at, at]


@pytest.mark.parametrize("codec", [0, Codec.ZSTD])
def test_log_append_time_stamps_the_batch(codec):
    sent = good(3, codec=codec)
    validated = check(sent, message_timestamp_type="LogAppendTime", now_ms=NOW + 777)
    batch = stored(validated)
    assert batch.timestamp_type == 1
    assert batch.max_timestamp == NOW + 777
    assert validated.log_append_time_ms == NOW + 777
    assert [r.timestamp for r in batch.records()] == [NOW + 777] * 3
    _, records = validated.checked
    assert records.obj is sent


def test_the_log_append_time_bit_is_cleared_on_a_create_time_topic():
    sent = changed(good(3), (ATTRIBUTES, 8), (MAX_TIMESTAMP, NOW + 500))
    validated = check(sent)
    batch = stored(validated)
    assert batch.timestamp_type == 0
    # The records of such a batch all had the batch's timestamp when they were checked.
    assert batch.max_timestamp == NOW + 500
    assert validated.log_append_time_ms == -1


def test_the_log_append_time_bit_is_refused_on_a_log_append_time_topic():
    sent = changed(good(2), (ATTRIBUTES, 8))
    error = refused(32, sent, log_start=True, message_timestamp_type="LogAppendTime")
    assert error.record_errors[1] == (
        1,
        f"Invalid timestamp type in message DefaultRecord(offset=1, timestamp={NOW + 1}, "
        "key=2 bytes, value=7 bytes). Producer should not set timestamp type to LogAppendTime.",
    )


def test_the_log_append_time_bit_without_a_timestamp_is_refused_everywhere():
    sent = changed(good(1), (ATTRIBUTES, 8), (MAX_TIMESTAMP, -1))
    refused(32, sent, log_start=True)


# Another codec


def contents(batch: RecordBatch) -> list[tuple]:
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch.records()]


@pytest.mark.parametrize("source", [0, *CODECS])
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topics_codec_wins(source, target):
    sent = good(
        3,
        codec=source,
        headers=[[("h", b"1"), ("h", None)], (), ()],
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        transactional=True,
    )
    validated = check(sent, compression_type=target)
    batch = stored(validated)
    assert batch.codec == ["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(target)
    assert contents(batch) == contents(RecordBatch(sent))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 1, 9)
    assert batch.is_transactional
    assert validated.max_timestamp == NOW + 2
    if batch.codec == source:
        assert written(validated) == sent


def test_recompression_with_log_append_time():
    validated = check(good(3), compression_type="gzip", message_timestamp_type="LogAppendTime")
    batch = stored(validated)
    assert (batch.timestamp_type, batch.max_timestamp) == (1, NOW)
    assert validated.log_append_time_ms == NOW


def test_the_level_is_obeyed():
    value = b"".join(b"offset %d is %d " % (n * n, n % 97) for n in range(5_000))
    sent = build_batch([value], timestamps=NOW)
    sizes = [
        check(sent, compression_type="gzip", compression_gzip_level=level).size for level in (1, 9)
    ]
    assert sizes[0] > sizes[1]


def test_plain_control_batches_are_not_compressed():
    sent = good(1, control=True)
    validated = check(sent, origin=AppendOrigin.COORDINATOR, compression_type="gzip")
    assert written(validated) == sent


def test_size_is_checked_again_after_conversion():
    sent = build_batch([bytes(10_000)], timestamps=NOW, codec=Codec.GZIP)
    assert len(sent) < 1000
    refused(10, sent, log_start=False, compression_type="uncompressed", max_message_bytes=5000)


def test_a_batch_larger_than_a_segment_is_refused():
    sent = good()
    check(sent, segment_bytes=len(sent))
    refused(18, sent, log_start=False, segment_bytes=len(sent) - 1)


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.binary(max_size=20),
            st.none() | st.binary(max_size=40),
            st.integers(-3, 2**40),
        ),
        min_size=1,
        max_size=20,
    ),
    codec=st.sampled_from([0, *CODECS]),
    target=st.sampled_from(["producer", "uncompressed", "snappy", "zstd"]),
)
def test_whatever_is_accepted_reads_back_as_it_was_sent(rows, codec, target):
    keys, values, timestamps = map(list, zip(*rows, strict=True))
    sent = build_batch(values, keys=keys, timestamps=timestamps, codec=codec)
    validated = check(sent, compression_type=target, now_ms=2**40)
    batch = stored(validated)
    assert contents(batch) == contents(RecordBatch(sent))
    assert batch.max_timestamp == max(-1, *timestamps)


@given(st.binary(max_size=200), st.integers(0, 120))
def test_no_bytes_bring_anything_but_a_kafka_error(noise, position):
    sent = bytearray(good(codec=Codec.LZ4) if len(noise) % 2 else good())
    position = min(position, len(sent))
    sent[position : position + len(noise)] = noise
    for candidate in (bytes(sent), sealed(sent) if len(sent) > 21 else bytes(sent), noise):
        for magic_limits in ((2, 2), (0, 2)):
            with suppress(errors.KafkaError):
                stored(check(candidate, magic_limits=magic_limits, cleanup_policy="compact"))


# Old formats (Produce 0 to 2)

OLD = (0, 2)


def old(
    magic: int, *values: bytes, codec: int = 0, at: int = NOW, key: bytes | None = b"k"
) -> bytes:
    """Messages of an old format: one after the other, or in one compressed wrapper."""
    if codec:
        rows = [Record((n, at + n, key, value, ())) for n, value in enumerate(values)]
        return encode_wrapper(rows, magic=magic, codec=codec)
    return b"".join(
        encode_message(offset=n, magic=magic, timestamp=at + n, key=key, value=value)
        for n, value in enumerate(values)
    )


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_messages_become_one_batch(magic, codec):
    validated = check(old(magic, b"a", b"b", b"c", codec=codec), magic_limits=OLD)
    batch = stored(validated)
    assert batch.codec == codec
    at = [-1] * 3 if magic == 0 else [NOW, NOW + 1, NOW + 2]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in batch.records()] == [
        (slot, at[slot], b"k", value) for slot, value in enumerate([b"a", b"b", b"c"])
    ]
    assert (batch.producer_id, batch.base_sequence) == (-1, -1)
    assert validated.max_timestamp == (-1 if magic == 0 else NOW + 2)


def test_old_messages_take_the_topics_codec_and_time():
    sent = old(1, b"a", b"b", codec=Codec.GZIP)
    validated = check(
        sent, magic_limits=OLD, compression_type="zstd", message_timestamp_type="LogAppendTime"
    )
    batch = stored(validated)
    assert (batch.codec, batch.timestamp_type, batch.max_timestamp) == (Codec.ZSTD, 1, NOW)
    assert validated.log_append_time_ms == NOW


def test_a_new_batch_in_an_old_request_is_stored_as_it_is():
    assert written(check(good(), magic_limits=OLD)) == good()


def test_an_incomplete_old_message_at_the_end_is_trimmed():
    sent = old(1, b"a", b"b")
    assert stored(check(sent[:-1], magic_limits=OLD)).record_count == 1


def test_old_messages_of_mixed_formats_are_invalid():
    refused(87, old(0, b"a") + old(1, b"b"), log_start=True, magic_limits=OLD)
    refused(87, old(0, b"a") + good(), log_start=True, magic_limits=OLD)


def test_two_wrappers_are_invalid():
    sent = old(1, b"a", codec=Codec.GZIP) * 2
    refused(87, sent, log_start=True, magic_limits=OLD)


@pytest.mark.parametrize("position", [17, 20, -1])
def test_a_flipped_bit_in_an_old_message_is_corrupt(position):
    sent = bytearray(old(1, b"a"))
    sent[position] ^= 1
    refused(2, sent, log_start=False, magic_limits=OLD)


def test_a_wrong_checksum_inside_a_wrapper_is_corrupt():
    inner = bytearray(old(1, b"a", b"b"))
    inner[-1] ^= 1
    wrapper = encode_message(
        offset=1, magic=1, attributes=1, timestamp=NOW, key=None, value=gzip.compress(inner)
    )
    refused(2, wrapper, log_start=False, magic_limits=OLD)


@pytest.mark.parametrize(
    "inner",
    [b"", old(0, b"a"), old(1, b"a")[:-1], old(1, b"a", codec=Codec.GZIP)],
    ids=["empty", "another magic", "cut", "compressed"],
)
def test_a_wrapper_of_something_else_is_invalid(inner):
    wrapper = encode_message(
        offset=0, magic=1, attributes=1, timestamp=NOW, key=None, value=gzip.compress(inner)
    )
    refused(87, wrapper, log_start=True, magic_limits=OLD)


def test_a_wrapper_that_does_not_decompress_is_an_unknown_server_error():
    wrapper = encode_message(
        offset=0, magic=1, attributes=1, timestamp=NOW, key=None, value=b"no gzip"
    )
    refused(-1, wrapper, log_start=True, magic_limits=OLD)


def test_old_messages_obey_size_keys_and_times():
    sent = old(1, b"a", b"b")
    refused(10, sent, log_start=False, magic_limits=OLD, max_message_bytes=30)
    check(old(1, bytes(100)), magic_limits=OLD, max_message_bytes=175)
    refused(10, old(1, bytes(100)), log_start=False, magic_limits=OLD, max_message_bytes=150)
    keyless = old(1, b"a", key=None)
    error = refused(87, keyless, log_start=True, magic_limits=OLD, cleanup_policy="compact")
    assert [index for index, _ in error.record_errors] == [0]
    late = old(1, b"a", at=NOW + 2 * HOUR)
    refused(32, late, log_start=True, magic_limits=OLD)


def test_a_compressed_batch_holds_no_more_records_than_a_plain_one_could():
    batch = build_batch([b""] * 1_000, timestamps=NOW, codec=Codec.GZIP)
    refused(10, batch, log_start=False, max_message_bytes=9_999)
    check(batch, max_message_bytes=10_000)
