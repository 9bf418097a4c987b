"""Magic 0 and 1: vectors, wrappers, relative offsets, and conversion both ways."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import sizes
from tests.wire.records.batches import NOW, fields
from wire.records import (
    CorruptBatch,
    InvalidRecord,
    Record,
    RecordsError,
    TimestampType,
    TooLarge,
    UnsupportedCodec,
    build_batch,
    iter_batches,
)
from wire.records.compression import compress, decompress
from wire.records.control import build_end_transaction_marker
from wire.records.legacy import (
    LegacyBatch,
    encode_message,
    encode_wrapper,
)
from wire.records.legacy_conversion import down_convert

V0 = bytes.fromhex("0000000000000000000000101fecd70a0000000000016b0000000176")
V1 = bytes.fromhex("00000000000000000000001839268c3301000000018bcfe56800000000016b0000000176")


def record(offset: int, timestamp: int = NOW, key: bytes | None = b"k") -> Record:
    return Record((offset, timestamp, key, b"v%d" % offset, ()))


def wrapper(magic: int, offset: int, inner: bytes, *, codec: int = 1, bits: int = 0) -> bytes:
    """Return a compressed message around any bytes."""
    return encode_message(
        offset=offset,
        magic=magic,
        attributes=codec | bits,
        timestamp=NOW + 100,
        key=None,
        value=compress(codec, inner, magic=magic),
    )


def message(magic: int, offset: int, attributes: int = 0) -> bytes:
    return encode_message(
        offset=offset, magic=magic, attributes=attributes, timestamp=NOW, key=b"k", value=b"v"
    )


def offsets(data: bytes) -> list[int]:
    return [record.offset for batch in iter_batches(data) for record in batch.records()]


def test_vectors_read() -> None:
    old, newer = iter_batches(V0 + V1 + V1[:-1])
    assert isinstance(old, LegacyBatch)
    assert isinstance(newer, LegacyBatch)
    assert list(old.records()) == [(0, -1, b"k", b"v", ())]
    assert list(newer.records()) == [(0, NOW, b"k", b"v", ())]
    assert (old.magic, old.size, old.timestamp_type) == (0, 28, TimestampType.NONE)
    assert (newer.magic, newer.size, newer.timestamp_type) == (1, 36, TimestampType.CREATE_TIME)
    assert (old.max_timestamp, newer.max_timestamp) == (-1, NOW)
    for batch in (old, newer):
        assert batch.is_valid_crc()
        assert (batch.codec, batch.base_offset, batch.last_offset, batch.next_offset) == (
            0,
            0,
            0,
            1,
        )
        assert batch.record_count == 1
        assert (batch.producer_id, batch.is_control, batch.is_transactional) == (-1, False, False)


def test_vectors_build() -> None:
    assert encode_message(offset=0, magic=0, key=b"k", value=b"v") == V0
    assert encode_message(offset=0, magic=1, timestamp=NOW, key=b"k", value=b"v") == V1


def test_nulls_and_log_append_time() -> None:
    batch = LegacyBatch(
        encode_message(offset=7, magic=1, attributes=8, timestamp=NOW, key=None, value=None)
    )
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert list(batch.records()) == [(7, NOW, None, None, ())]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("gap", [1, 3])
def test_wrappers_round_trip(magic: int, codec: int, gap: int) -> None:
    records = [record(10 + index * gap, NOW + index) for index in range(5)]
    batch = LegacyBatch(encode_wrapper(records, magic=magic, codec=codec))
    assert batch.is_valid_crc()
    assert (batch.codec, batch.record_count) == (codec, 5)
    assert (batch.base_offset, batch.last_offset) == (10, 10 + 4 * gap)
    assert batch.max_timestamp == (NOW + 4 if magic else -1)
    expected = records if magic else [Record((r[0], -1, *r[2:])) for r in records]
    assert list(batch.records()) == expected


def test_relative_offsets_of_magic_1() -> None:
    inner = b"".join(message(1, index) for index in range(3))
    assert offsets(wrapper(1, 42, inner)) == [40, 41, 42]
    assert offsets(wrapper(1, 2, inner)) == [0, 1, 2]
    assert offsets(wrapper(1, 0, inner)) == [0, 1, 2]  # as from some producers
    with pytest.raises(InvalidRecord, match="offset 2 in a wrapper of offset 1"):
        offsets(wrapper(1, 1, inner))


def test_absolute_offsets_of_magic_0() -> None:
    inner = message(0, 40) + message(0, 41)
    assert offsets(wrapper(0, 41, inner)) == [40, 41]


def test_log_append_time_of_a_wrapper_is_that_of_its_records() -> None:
    batch = LegacyBatch(wrapper(1, 1, message(1, 0) + message(1, 1), bits=8))
    assert [r.timestamp for r in batch.records()] == [NOW + 100] * 2
    batch = LegacyBatch(wrapper(1, 1, message(1, 0) + message(1, 1)))
    assert [r.timestamp for r in batch.records()] == [NOW] * 2


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (b"", "without records"),
        (message(0, 0), "magic 0 inside magic 1"),
        (wrapper(1, 0, message(1, 0)), "compressed message inside"),
        (message(1, 0)[:-1], "in 35"),
        (message(1, 0) + b"rest", "4 bytes"),
    ],
)
def test_bad_wrappers(inner: bytes, reason: str) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        LegacyBatch(wrapper(1, 5, inner)).records()


def test_a_wrapper_without_value_is_invalid() -> None:
    bad = encode_message(offset=0, magic=1, attributes=1, timestamp=0, key=None, value=None)
    with pytest.raises(InvalidRecord, match="without value"):
        LegacyBatch(bad).records()


def test_checksums_outside_and_inside() -> None:
    for whole in (V0, V1):
        for position in range(12, len(whole)):
            data = bytearray(whole)
            data[position] ^= 4
            if data[16] == whole[16]:
                assert not LegacyBatch(data).is_valid_crc()
    inner = bytearray(message(1, 0))
    inner[-1] ^= 1
    batch = LegacyBatch(wrapper(1, 0, bytes(inner)))
    assert batch.is_valid_crc()
    with pytest.raises(CorruptBatch, match="crc"):
        batch.records()


def test_fields_that_do_not_fit() -> None:
    for position, value in ((18, 2), (18, 100), (18, 2**31 - 1), (23, 2), (23, 0)):
        data = bytearray(V0)
        data[position : position + 4] = value.to_bytes(4, "big")
        with pytest.raises(InvalidRecord):
            LegacyBatch(data).records()
    for size in (0, 16, 27):
        with pytest.raises(CorruptBatch):
            LegacyBatch(V0[:size])


def test_wrappers_obey_the_limit() -> None:
    batch = LegacyBatch(encode_wrapper([record(0), record(1)], magic=1, codec=1))
    with pytest.raises(TooLarge):
        batch.records(limit=50)


@pytest.mark.slow
@given(
    st.sampled_from([0, 1]),
    st.sampled_from([0, 1, 2, 3]),
    st.lists(st.tuples(fields, fields), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
@settings(max_examples=sizes.size(60, full=150))
def test_mutations_fail_only_with_typed_errors(
    magic: int, codec: int, pairs: list[tuple[Any, Any]], random: Random
) -> None:
    records = [Record((i, NOW, key, value, ())) for i, (key, value) in enumerate(pairs)]
    if codec:
        data = bytearray(encode_wrapper(records, magic=magic, codec=codec))
    else:
        data = bytearray(encode_message(offset=0, magic=magic, key=pairs[0][0], value=pairs[0][1]))
    for _ in range(random.choice([1, 2, 5])):
        data[random.randrange(len(data))] = random.randrange(256)
    try:
        for batch in iter_batches(data):
            list(batch.records())
    except RecordsError:
        return


# --- down -----------------------------------------------------------------------------------------


def batch_of(codec: int = 0, *, base_offset: int = 10, **more: Any) -> bytes:
    return build_batch(
        [b"v%d" % index for index in range(5)],
        keys=[b"k", None, b"k", b"", b"k"],
        timestamps=[NOW + index for index in range(5)],
        headers=[[("h", b"x")]] * 5,
        codec=codec,
        base_offset=base_offset,
        **more,
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_batches_become_messages_from_the_first_offset_on(magic: int) -> None:
    data = down_convert(
        memoryview(batch_of() + batch_of(base_offset=20)), magic=magic, first_offset=13
    )
    batches = list(iter_batches(data))
    assert all(batch.magic == magic and batch.codec == 0 for batch in batches)
    assert all(batch.is_valid_crc() for batch in batches)
    assert offsets(data) == [13, 14, 20, 21, 22, 23, 24]
    first = next(batches[0].records())
    assert first == (13, NOW + 3 if magic else -1, b"", b"v3", ())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_compressed_batches_become_whole_wrappers(magic: int, codec: int) -> None:
    data = down_convert(batch_of(codec), magic=magic, first_offset=13)
    (batch,) = iter_batches(data)
    assert isinstance(batch, LegacyBatch)
    assert (batch.magic, batch.codec, batch.last_offset) == (magic, codec, 14)
    assert offsets(data) == [10, 11, 12, 13, 14]
    if codec == 3:
        value = data[34 if magic else 26 :]  # behind the size fields of the null key and the value
        assert value[6] == (0x82 if magic else 0x1A)
        assert decompress(3, value, magic=magic)


def test_log_append_time_goes_down_too() -> None:
    for codec in (0, 1):
        data = down_convert(batch_of(codec, timestamp_type=1), magic=1, first_offset=0)
        for batch in iter_batches(data):
            assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
            assert {r.timestamp for r in batch.records()} == {NOW + 4}


def test_control_batches_are_left_out() -> None:
    marker = build_end_transaction_marker(
        1, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW, base_offset=15
    )
    data = down_convert(batch_of() + marker, magic=1, first_offset=0)
    assert offsets(data) == [10, 11, 12, 13, 14]
    assert down_convert(marker, magic=0, first_offset=0) == b""


def test_zstd_cannot_go_down() -> None:
    with pytest.raises(UnsupportedCodec):
        down_convert(batch_of() + batch_of(4), magic=1, first_offset=0)


def test_old_messages_are_copied_or_go_one_down() -> None:
    assert down_convert(V0 + V1, magic=1, first_offset=0) == V0 + V1
    assert down_convert(V0 + V1, magic=0, first_offset=0) == V0 + V0
    records = [record(5), record(6)]
    data = down_convert(encode_wrapper(records, magic=1, codec=2), magic=0, first_offset=6)
    (batch,) = iter_batches(data)
    assert (batch.magic, batch.codec) == (0, 2)
    assert offsets(data) == [5, 6]
