"""Compressed payloads, whole and broken: what writers of the four codecs may send."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from random import Random

import cramjam
import lz4.frame
import zstandard

from wire.records.compression import XERIAL_HEADER, xxh32_small

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
XERIAL_MAGIC = XERIAL_HEADER[:8]
LZ4_MAGIC = b"\x04\x22\x4d\x18"
SKIPPABLE = b"\x50\x2a\x4d\x18"
TAILS = (b"", b"\x00", b"\x00" * 8, b"\x1f", b"\x1f\x8b", b"\x1f\x8b\x08", b"rest", b"\xff\0" * 10)

SHORT = b"abc" * 20

Case = tuple[str, int, int, bytes]
"""(note, codec, magic, payload)."""


def samples(random: Random) -> list[bytes]:
    """Return contents: empty, short, repetitive, random, larger than a block of each codec."""
    words = b" ".join(random.choices([b"click", b"user", b"17", b"ok"], k=600))
    return [b"", b"a", SHORT, words, random.randbytes(300), bytes(70_000), words * 40]


def well_formed(contents: list[bytes], tails: tuple[bytes, ...] = TAILS) -> Iterator[Case]:
    """Yield the contents in every shape that the formats know or nearly know, with each tail."""
    for content in contents:
        size = f"{len(content)} bytes"
        for codec, shapes in SHAPES.items():
            for note, payload in shapes(content):
                for magic in (0, 1, 2) if codec == LZ4 else (2,):
                    yield f"{note}, {size}", codec, magic, payload
                for tail in tails[1:]:
                    yield f"{note}, {size}, then {tail[:8].hex()}", codec, 2, payload + tail
    for codec in SHAPES:
        for tail in TAILS:
            yield f"only {tail[:8].hex()}", codec, 2, tail


def broken(cases: list[Case], random: Random, count: int) -> Iterator[Case]:
    """Yield `count` payloads with a few bytes changed, removed, repeated or added."""
    for _ in range(count):
        note, codec, magic, payload = random.choice(cases)
        changed = bytearray(payload)
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            at = random.randrange(len(changed) + 1)
            # Half of the changes hit the first bytes, where the headers are.
            if changed and random.random() < 0.5:
                at = min(at, random.randrange(24), len(changed) - 1)
            match random.randrange(5):
                case 0 if at < len(changed):
                    changed[at] ^= 1 << random.randrange(8)
                case 1 if at < len(changed):
                    changed[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
                case 2:
                    del changed[at : at + random.choice((1, 1, 4, 1000))]
                case 3:
                    changed[at:at] = random.randbytes(random.choice((1, 4)))
                case _:
                    del changed[at:]
        yield f"broken {note}", codec, magic, bytes(changed)


def _gzips(content: bytes) -> Iterator[tuple[str, bytes]]:
    for level in (0, 1, 9):
        yield f"level {level}", gzip.compress(content, level, mtime=0)
    for flags in range(0, 256, 2 if len(content) < 100 else 30):
        yield f"flags {flags:#x}", _member(content, flags)
        if flags & 2:
            yield f"flags {flags:#x}, wrong header crc", _member(content, flags, header_crc=1)
    for method in (0, 7, 9):
        yield f"method {method}", _member(content, 0, method=method)
    yield "wrong crc", _member(content, 0, crc=1)
    yield "wrong size", _member(content, 0, size=1)
    yield "no trailer", _member(content, 0)[:-8]
    yield "half a trailer", _member(content, 0)[:-3]
    two = _member(content, 0) + _member(b"more", 8)
    yield "two members", two
    yield "two members, the second cut", two[:-4]
    yield "two members, the second broken", two[:-9] + b"\xff" * 9
    yield "a member after zeros", _member(content, 0) + bytes(4) + _member(b"more", 0)
    yield "deflate without a frame", zlib.compress(content)[2:-4]
    yield "zlib", zlib.compress(content)


def _member(
    content: bytes, flags: int, *, method: int = 8, crc: int = 0, size: int = 0, header_crc: int = 0
) -> bytes:
    head = struct.pack("<2sBBIBB", b"\x1f\x8b", method, flags, 0, 0, 255)
    if flags & 4:
        head += struct.pack("<H", 3) + b"ext"
    if flags & 8:
        head += b"name\0"
    if flags & 16:
        head += b"comment\0"
    if flags & 2:
        head += struct.pack("<H", (zlib.crc32(head) & 0xFFFF) ^ header_crc)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(content) + deflate.flush()
    return head + body + struct.pack("<II", zlib.crc32(content) ^ crc, (len(content) + size))


def _snappys(content: bytes) -> Iterator[tuple[str, bytes]]:
    raw = bytes(cramjam.snappy.compress_raw(content))
    yield "raw", raw
    yield "raw with a larger size", b"\x80\x01" + raw[1:]
    block = struct.pack(">i", len(raw)) + raw
    for version, compatible in ((1, 1), (0, 0), (0, 1), (2, 1), (1, 2), (2, 2), (-1, 1), (1, -1)):
        head = XERIAL_MAGIC + struct.pack(">ii", version, compatible)
        yield f"version {version}, compatible {compatible}", head + block
        yield f"a second stream of {version}, {compatible}", XERIAL_HEADER + block + head + block
    head = XERIAL_HEADER
    for size in range(len(head) + 1):
        yield f"{size} bytes of the header", head[:size]
    yield "two blocks", head + block + block
    yield "two streams", head + block + head + block
    yield "two streams, the second cut", head + block + head[:10]
    for size in (0, -1, -(2**31), 1, 2**31 - 1, len(raw) + 1):
        yield f"a block of {size}", head + struct.pack(">i", size) + raw
    yield "a block, then a block of 0", head + block + bytes(4)
    yield "a block of 0, then a block", head + bytes(4) + block
    yield "a block, then half a size", head + block + b"\0\0"
    yield "a block with more bytes", head + struct.pack(">i", len(raw) + 2) + raw + b"\0\0"
    yield "framing format", bytes(cramjam.snappy.compress(content))


def _lz4s(content: bytes) -> Iterator[tuple[str, bytes]]:
    for size_id in (4, 5, 6, 7):
        for linked in (False, True):
            for bits in range(8):
                frame = lz4.frame.compress(
                    content,
                    block_size=size_id,
                    block_linked=linked,
                    content_checksum=bool(bits & 1),
                    block_checksum=bool(bits & 2),
                    store_size=bool(bits & 4),
                )
                note = f"block size {size_id}, linked {linked}, options {bits}"
                yield note, frame
                if size_id != 4:
                    continue
                yield f"{note}, no end", frame[: -8 if bits & 1 else -4]
                yield f"{note}, the last byte wrong", frame[:-1] + bytes((frame[-1] ^ 1,))
    plain = lz4.frame.compress(content, block_linked=False)
    yield "two frames", plain + plain
    yield "a skippable frame first", SKIPPABLE + struct.pack("<I", 3) + b"abc" + plain
    yield "a skippable frame last", plain + SKIPPABLE + struct.pack("<I", 3) + b"abc"
    blocks = plain[7:]
    for flags in range(256):
        for descriptor in (0x40, 0x70) if flags in (0x60, 0x40) else (0x40,):
            yield f"flags {flags:#x}", _lz4_head(flags, descriptor, len(content)) + blocks
    for descriptor in range(256):
        yield f"descriptor {descriptor:#x}", _lz4_head(0x60, descriptor, len(content)) + blocks
    head = bytearray(_lz4_head(0x60, 0x40, 0))
    for change in (1, 0xFF):
        head[-1] ^= change
        yield "wrong header checksum", bytes(head) + blocks
    yield (
        "legacy header checksum",
        bytes(head[:6]) + bytes((xxh32_small(head[:6]) >> 8 & 0xFF,)) + blocks,
    )
    for size in (0, 1, len(content) + 1, 2**63):
        yield f"content size {size}", _lz4_head(0x68, 0x40, size) + blocks
    for size in (0x8000_0000, 0xFFFF_FFFF, 0x7FFF_FFFF, 70_000, 0x8001_1170):
        yield f"block size {size:#x}", _lz4_head(0x60, 0x40, 0) + struct.pack("<I", size) + blocks
    stored = struct.pack("<I", 0x8000_0000 | min(len(content), 1000)) + content[:1000]
    yield "a stored block", _lz4_head(0x60, 0x40, 0) + stored + bytes(4)


def _lz4_head(flags: int, descriptor: int, content_size: int) -> bytes:
    fields = bytes((flags, descriptor))
    if flags & 8:
        fields += struct.pack("<Q", content_size)
    return LZ4_MAGIC + fields + bytes((xxh32_small(fields) >> 8 & 0xFF,))


def _zstds(content: bytes) -> Iterator[tuple[str, bytes]]:
    for level in (-5, 1, 3, 19):
        yield f"level {level}", zstandard.ZstdCompressor(level=level).compress(content)
    for bits in range(4):
        made = zstandard.ZstdCompressor(
            write_checksum=bool(bits & 1), write_content_size=bool(bits & 2)
        )
        frame = made.compress(content)
        yield f"options {bits}", frame
        yield f"options {bits}, the last byte wrong", frame[:-1] + bytes((frame[-1] ^ 1,))
    stream = zstandard.ZstdCompressor().compressobj()
    frame = stream.compress(content) + stream.flush()
    yield "streamed", frame
    skipped = SKIPPABLE + struct.pack("<I", 3) + b"abc"
    yield "two frames", frame + frame
    yield "a skippable frame first", skipped + frame
    yield "a skippable frame last", frame + skipped
    yield "a skippable frame between", frame + skipped + frame
    yield "a skippable frame only", skipped
    yield "an empty skippable frame", SKIPPABLE + bytes(4)
    yield "a skippable frame cut", frame + skipped[:-1]
    yield "a skippable frame alone, cut", skipped[:-1]
    for size in (1, 3, 4, 5, 6):
        yield f"a frame, then {size} bytes of one", frame + frame[:size]
        yield f"a frame, then {size} bytes of a skippable one", frame + skipped[:size]
    yield "two frames, the second cut", frame + frame[:-1]
    yield "two frames, the second a header", frame + frame[:4]
    empty_block = b"\x01\0\0"
    for log in range(32):
        head = ZSTD_MAGIC + b"\0" + bytes((log - 10 << 3 & 0xFF,))
        yield f"window 2^{log}", head + empty_block
    for mantissa in range(8):
        head = ZSTD_MAGIC + b"\0" + bytes((17 << 3 | mantissa,))
        yield f"window 2^27 and {mantissa}/8", head + empty_block
    for descriptor in range(256):
        fields = bytes(20)
        yield f"descriptor {descriptor:#x}", ZSTD_MAGIC + bytes((descriptor,)) + fields
    for kind in range(4):
        for size in (0, 1, 5, 131_072, 131_073):
            block = struct.pack("<I", size << 3 | kind << 1 | 1)[:3]
            data = b"x" * min(size, 5)
            yield f"block of type {kind}, {size}", ZSTD_MAGIC + b"\0\x58" + block + data
    for number in range(1, 9):
        yield f"magic of version 0.{number}", bytes((0x20 + number,)) + b"\xb5\x2f\xfd" + frame[4:]


ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SHAPES = {GZIP: _gzips, SNAPPY: _snappys, LZ4: _lz4s, ZSTD: _zstds}
