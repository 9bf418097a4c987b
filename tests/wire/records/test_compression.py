"""Codecs: Kafka's framings byte for byte, hard limits, and only typed errors."""

from __future__ import annotations

import gzip
import os
from random import Random

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from wire.records import CorruptPayload, RecordsError, TooLarge, UnsupportedCodec
from wire.records.compression import XERIAL_HEADER, compress, decompress, xxh32_small

GZIP, SNAPPY, LZ4, ZSTD = CODECS = (1, 2, 3, 4)
KAFKA = b"kafka" * 10

VECTORS = [
    (LZ4, 2, "04224d186040820f0000005f6b61666b61050015506b61666b6100000000", KAFKA),
    (LZ4, 0, "04224d1860401a0f0000005f6b61666b61050015506b61666b6100000000", KAFKA),
    (LZ4, 2, "04224d186040820300008061626300000000", b"abc"),
    (SNAPPY, 2, "32106b61666b61b20500", KAFKA),
    (SNAPPY, 2, "82534e415050590000000001000000010000000a32106b61666b61b20500", KAFKA),
    (GZIP, 2, "1f8b0800000000000203cb4e4ccb4ecc26850000933f57ab32000000", KAFKA),
    (ZSTD, 2, "28b52ffd20325d0000286b61666b610100c22c5a", KAFKA),
]


@pytest.mark.parametrize(("codec", "magic", "encoded", "data"), VECTORS)
def test_vectors_decompress(codec: int, magic: int, encoded: str, data: bytes) -> None:
    assert decompress(codec, memoryview(bytes.fromhex(encoded)), magic=magic) == data


@pytest.mark.parametrize(("codec", "magic", "encoded", "data"), VECTORS)
def test_cut_vectors_are_corrupt(codec: int, magic: int, encoded: str, data: bytes) -> None:
    whole = bytes.fromhex(encoded)
    for end in range(len(whole)):
        # As in Java: a stream whose first block has no size yet, and zstd of no bytes.
        is_empty = codec == SNAPPY and whole.startswith(XERIAL_HEADER[:8]) and 16 <= end < 20
        if is_empty or (codec == ZSTD and end == 0):
            assert decompress(codec, whole[:end], magic=magic) == b""
            continue
        with pytest.raises(CorruptPayload):
            decompress(codec, whole[:end], magic=magic)


@pytest.mark.parametrize("encoder", [0, 1, 4])
def test_writers_frame_as_kafka_does(encoder: int) -> None:
    codec, magic, encoded, data = VECTORS[encoder]
    assert compress(codec, data, magic=magic).hex() == encoded


def test_the_broken_lz4_header_checksum_is_for_magic_0_only() -> None:
    broken = bytes.fromhex(VECTORS[1][2])
    with pytest.raises(CorruptPayload, match="lz4"):
        decompress(LZ4, broken, magic=1)
    assert decompress(LZ4, compress(LZ4, KAFKA, magic=1), magic=0) == KAFKA


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("level", [None, 1, 9])
@pytest.mark.parametrize("size", [0, 1, 100, 32_768, 65_537, 300_000])
def test_round_trip(codec: int, level: int | None, size: int) -> None:
    for data in (os.urandom(size), Random(size).choices(b"ab", k=size)):
        data = bytes(data)
        compressed = compress(codec, memoryview(data), level)
        assert decompress(codec, memoryview(compressed)) == data
        assert decompress(codec, compressed, limit=size) == data
        if size:
            with pytest.raises(TooLarge):
                decompress(codec, compressed, limit=size - 1)
            with pytest.raises(CorruptPayload):
                decompress(codec, compressed[:-1])


def test_lz4_blocks_are_independent_and_of_64_kib() -> None:
    compressed = compress(LZ4, os.urandom(200_000))
    assert compressed[4:7].hex() == "604082"


@pytest.mark.slow
@pytest.mark.parametrize("size_id", [4, 5, 6, 7])
@pytest.mark.parametrize("with_sizes", [False, True])
def test_lz4_of_other_writers(size_id: int, with_sizes: bool) -> None:
    data = bytes(Random(1).choices(b"abc", k=500_000))
    frame = lz4.frame.compress(
        data,
        block_size=size_id,
        block_linked=False,
        store_size=with_sizes,
        content_checksum=with_sizes,
        block_checksum=with_sizes,
    )
    assert decompress(LZ4, frame) == data
    assert decompress(LZ4, frame, magic=0) == data


def test_lz4_dependent_blocks_and_foreign_versions_are_refused() -> None:
    frame = lz4.frame.compress(bytes(200_000), block_linked=True)
    with pytest.raises(CorruptPayload, match="dependent"):
        decompress(LZ4, frame)
    with pytest.raises(CorruptPayload, match="version"):
        decompress(LZ4, bytes.fromhex("04224d18a040820300008061626300000000"))


def test_snappy_streams_joined_and_blocks_of_32_kib() -> None:
    data = os.urandom(100_000)
    compressed = compress(SNAPPY, data)
    assert compressed.startswith(bytes.fromhex("82534e41505059000000000100000001"))
    assert decompress(SNAPPY, compressed + compressed) == data + data
    assert int.from_bytes(compressed[16:20], "big") < 33_000


def test_gzip_members_may_follow_each_other() -> None:
    joined = gzip.compress(b"first") + gzip.compress(b"second")
    assert decompress(GZIP, joined) == b"firstsecond"
    assert decompress(GZIP, joined + b"rest") == b"firstsecond"
    with pytest.raises(CorruptPayload):
        decompress(GZIP, joined[:-5])


def test_zstd_without_content_size_and_in_several_frames() -> None:
    stream = zstandard.ZstdCompressor(level=3).compressobj()
    data = bytes(Random(2).choices(b"abcd", k=400_000))
    frame = stream.compress(data) + stream.flush()
    assert decompress(ZSTD, frame) == data
    assert decompress(ZSTD, frame + frame) == data + data
    with pytest.raises(CorruptPayload):
        decompress(ZSTD, frame[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_bombs_are_refused_by_the_limit(codec: int) -> None:
    bomb = compress(codec, bytes(80 << 20))
    with pytest.raises(TooLarge):
        decompress(codec, bomb, limit=64 << 20)


@pytest.mark.parametrize("codec", CODECS)
def test_only_the_size_is_limited_not_the_ratio(codec: int) -> None:
    lines = b'{"user": 17, "event": "click", "ok": true}\n' * 70_000
    compressed = compress(codec, lines, level=1)
    assert decompress(codec, compressed, limit=len(lines)) == lines
    assert codec != ZSTD or len(lines) > 5_000 * len(compressed)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_holds_for_the_sum_of_several_parts(codec: int) -> None:
    one = bytes(Random(codec).choices(b"ab", k=40_000))
    whole = compress(codec, one + one)  # two blocks of snappy and lz4
    if codec in (GZIP, ZSTD):
        whole = compress(codec, one) + compress(codec, one)
    assert decompress(codec, whole, limit=len(one + one)) == one + one
    for limit in (len(one + one) - 1, len(one), len(one) - 1):
        with pytest.raises(TooLarge):
            decompress(codec, whole, limit=limit)


def test_snappy_claims_are_checked_before_memory_is_taken() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"x"
    with pytest.raises(TooLarge):
        decompress(SNAPPY, claim)
    with pytest.raises(TooLarge):
        decompress(SNAPPY, XERIAL_HEADER + b"\x00\x00\x00\x06" + claim)
    possible, impossible = b"\xfe\xff\xff\xff\x07" + b"x", bytes.fromhex("808001") + bytes(100)
    for block in (possible, impossible):
        with pytest.raises(CorruptPayload, match="cannot become"):
            decompress(SNAPPY, block, limit=(1 << 31) - 1)


def test_zstd_windows_are_bounded() -> None:
    # magic, no single segment, a window of 2^31 bytes, an empty last block
    frame = bytes.fromhex("28b52ffd" + "00" + "a8" + "010000")
    with pytest.raises(CorruptPayload, match="too much memory"):
        decompress(ZSTD, frame)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=200), random=st.randoms(use_true_random=False))
def test_mutated_payloads_fail_only_with_typed_errors(
    codec: int, data: bytes, random: Random
) -> None:
    compressed = bytearray(compress(codec, data * 20))
    for _ in range(random.choice([1, 3])):
        compressed[random.randrange(len(compressed))] = random.randrange(256)
    for payload in (bytes(compressed), data):
        for magic in (0, 2):
            try:
                decompressed = decompress(codec, payload, limit=1 << 20, magic=magic)
            except RecordsError:
                continue
            assert len(decompressed) <= 1 << 20


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_unknown_codecs(codec: int) -> None:
    with pytest.raises(UnsupportedCodec):
        compress(codec, b"")
    with pytest.raises(UnsupportedCodec):
        decompress(codec, b"")


def test_zstd_is_for_magic_2() -> None:
    with pytest.raises(UnsupportedCodec):
        compress(ZSTD, b"", magic=1)
    with pytest.raises(UnsupportedCodec):
        decompress(ZSTD, compress(ZSTD, b""), magic=1)


def test_no_codec_is_a_copy_within_the_limit() -> None:
    assert decompress(0, memoryview(b"abc")) == compress(0, b"abc") == b"abc"
    with pytest.raises(TooLarge):
        decompress(0, b"abc", limit=2)


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32(data: bytes, expected: int) -> None:
    assert xxh32_small(data) == expected


def test_raw_snappy_of_another_library() -> None:
    data = bytes(Random(3).choices(b"xyz", k=100_000))
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
