"""Rules of records whose second half only a long random search would reach."""

from __future__ import annotations

import gzip
from random import Random

import lz4.frame
import pytest

from tests.wire.records.batches import NOW
from wire.records import Codec, RecordBatch, TimestampType, build_batch, tuples
from wire.records.batch import stamp
from wire.records.compression import compress, decompress
from wire.records.encode.built import BuiltBatch
from wire.records.errors import TooLarge
from wire.records.legacy import LegacyBatch, encode_message
from wire.records.retain import retain
from wire.records.varint import INT64_MAX, INT64_MIN, timestamps_of

STAMPS = [NOW, NOW + 5, NOW + 9]


def test_gzip_members_share_one_limit() -> None:
    joined = gzip.compress(bytes(60)) * 2
    assert len(decompress(Codec.GZIP, joined, limit=120)) == 120
    with pytest.raises(TooLarge):
        decompress(Codec.GZIP, joined, limit=119)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("data", [bytes(600_000), Random(1).randbytes(600_000)], ids=["0", "any"])
def test_the_pieces_of_an_output_share_one_limit(codec: int, data: bytes) -> None:
    compressed = compress(codec, data)
    assert decompress(codec, compressed, limit=600_000) == data
    with pytest.raises(TooLarge):
        decompress(codec, compressed, limit=599_999)


def test_an_lz4_frame_of_magic_0_may_name_its_size() -> None:
    data = b"abc" * 100
    frame = lz4.frame.compress(data, store_size=True, block_linked=False)
    assert decompress(Codec.LZ4, frame, magic=0) == data


def test_records_that_stay_keep_their_times_without_the_first() -> None:
    batch = RecordBatch(build_batch([b"v"] * 3, timestamps=STAMPS))
    left = RecordBatch(retain(batch, [1, 2]))
    assert [row[:2] for row in tuples(left)] == [(1, NOW + 5), (2, NOW + 9)]
    assert (left.base_timestamp, left.max_timestamp) == (NOW + 5, NOW + 9)
    assert RecordBatch(retain(batch, [0, 1])).max_timestamp == NOW + 5


def test_records_that_stay_keep_their_append_time() -> None:
    built = build_batch([b"v"] * 3, timestamps=STAMPS, timestamp_type=TimestampType.LOG_APPEND_TIME)
    left = RecordBatch(retain(RecordBatch(built), [0]))
    assert [row[:2] for row in tuples(left)] == [(0, NOW + 9)]


def test_an_emptied_batch_has_no_delete_horizon() -> None:
    batch = RecordBatch(build_batch([b"v"] * 3, timestamps=STAMPS))
    dated = RecordBatch(retain(batch, [0], delete_horizon_ms=NOW + 100))
    assert dated.has_delete_horizon
    assert not RecordBatch(retain(dated, [])).has_delete_horizon


def test_a_stamp_changes_the_batch_at_its_position_only() -> None:
    one = build_batch([b"v"], timestamps=NOW)
    both = bytearray(one * 2)
    stamp(both, base_offset=7, leader_epoch=3, position=len(one), timestamp_type=1, max_timestamp=9)
    assert both[: len(one)] == one
    second = RecordBatch(both, len(one))
    assert (second.base_offset, second.max_timestamp, second.timestamp_type) == (7, 9, 1)
    second.check_crc()


def test_a_second_append_time_replaces_the_first() -> None:
    data = bytearray(build_batch([b"v"], timestamps=NOW))
    for time in (5, 6):
        stamp(data, base_offset=0, leader_epoch=0, timestamp_type=1, max_timestamp=time)
        batch = RecordBatch(data)
        batch.check_crc()
        assert batch.max_timestamp == time


def test_offsets_in_a_wrapper_of_magic_0_are_absolute_whatever_its_own() -> None:
    inner = b"".join(
        encode_message(offset=offset, magic=0, key=None, value=b"v") for offset in (0, 1)
    )
    wrapper = encode_message(
        offset=9, magic=0, attributes=Codec.GZIP, key=None, value=gzip.compress(inner)
    )
    assert [record.offset for record in LegacyBatch(wrapper).records()] == [0, 1]


def test_timestamps_wrap_at_both_ends() -> None:
    assert timestamps_of(INT64_MIN + 1, [-2, 0]) == [INT64_MAX, INT64_MIN + 1]
    assert timestamps_of(INT64_MAX - 1, [2, 0]) == [INT64_MIN, INT64_MAX - 1]


@pytest.mark.parametrize(
    ("keys", "expected"), [([b"k", None, b"k"], 1), ([b"k"] * 3, -1), ([None] * 3, 0), (None, 0)]
)
def test_a_built_batch_knows_its_first_record_without_a_key(
    keys: list[bytes | None] | None, expected: int
) -> None:
    batch = BuiltBatch([b"v"] * 3, keys=keys, timestamps=NOW)
    assert batch.first_null_key_index == expected
