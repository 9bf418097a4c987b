"""Compression of the records of a batch, in the exact framings Kafka's clients use.

    id  codec   framing
    1   gzip    RFC 1952; members may be concatenated
    2   snappy  xerial stream: 82 53 4E 41 50 50 59 00, int32 1, int32 1, then blocks of
                (int32 size | raw snappy block of at most 32 KiB); read also: one bare raw block
    3   lz4     LZ4 frame, independent blocks of 64 KiB, no sizes, no checksums (FLG 60, BD 40)
    4   zstd    standard frames; not below magic 2

Decompression does not trust its input: the output has a hard limit, checked while it grows. A zstd
window may not exceed 128 MiB, as in Kafka.

The first call that needs a library imports it.
"""

from __future__ import annotations

import zlib
from struct import Struct

from wire.records.errors import CorruptPayload, TooLarge, UnsupportedCodec
from wire.records.format import CODEC_NAMES, DECOMPRESSED_SIZE_MAX, Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from wire.records.record import Buffer

ZSTD_WINDOW_SIZE_MAX = 128 << 20

GZIP_WBITS = 16 + zlib.MAX_WBITS
GZIP_MAGIC = b"\x1f\x8b\x08"
GZIP_HEADER_SIZE = 10
GZIP_RESERVED_FLAGS = 0xE0
GZIP_REST_IGNORED = 18  # a rest of at most this size is no further member

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_SIZE = 32 << 10

SNAPPY_RATIO_MAX = 22  # the best ratio: a copy of 64 bytes takes 3 bytes

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_HEADER_SIZE_MIN = 7
LZ4_BLOCK_CHECKSUM_BIT = 0x10
LZ4_BLOCK_SIZE_MASK = 0x7FFF_FFFF
LZ4_CONTENT_CHECKSUM_BIT = 0x04
LZ4_CONTENT_SIZE_BIT = 0x08
LZ4_INDEPENDENT_BIT = 0x20
LZ4_VERSION_MASK = 0xC0
LZ4_VERSION = 0x40
LZ4_LEVEL_DEFAULT = 9  # in Kafka level 9 selects the fast compressor, every other level HC
LZ4_LEVEL_HC_MIN = 3
LZ4_CHUNK_SIZE = 256 << 10

ZSTD_LEVEL_DEFAULT = 3
ZSTD_BLOCK_SIZE_MAX = 128 << 10
ZSTD_BLOCK_BYTES_MIN = 4  # the smallest block: 3 bytes of header, and 1 byte that it repeats

_SIZE = Struct(">i")
_GZIP_TRAILER = Struct("<II")


def compress(codec: int, data: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """Return `data` compressed; `level` None means Kafka's default for the codec.

    Raises:
        UnsupportedCodec: the codec is unknown, is zstd for a magic below 2, or its library is not
            installed.
    """
    if codec == Codec.NONE:
        return bytes(data)
    _check_codec(codec, magic)
    try:
        return COMPRESSORS[codec](data, level, magic)
    except ImportError as error:
        raise UnsupportedCodec(f"{CODEC_NAMES[codec]}: {error}") from None


def decompress(
    codec: int, data: Buffer, *, limit: int = DECOMPRESSED_SIZE_MAX, magic: int = 2
) -> bytes:
    """Return `data` decompressed, at most `limit` bytes.

    Raises:
        CorruptPayload: the codec cannot read the bytes, or they end early.
        TooLarge: the output would exceed `limit`.
        UnsupportedCodec: as `compress`.
    """
    if codec == Codec.NONE:
        if len(data) > limit:
            raise TooLarge(f"{len(data)} bytes, the limit is {limit}")
        return bytes(data)
    _check_codec(codec, magic)
    try:
        return DECOMPRESSORS[codec](data, limit, magic)
    except ImportError as error:
        raise UnsupportedCodec(f"{CODEC_NAMES[codec]}: {error}") from None


def _check_codec(codec: int, magic: int) -> None:
    if codec not in COMPRESSORS:
        raise UnsupportedCodec(f"codec {codec}")
    if codec == Codec.ZSTD and magic < 2:
        raise UnsupportedCodec(f"zstd with magic {magic}")


def _gzip(data: Buffer, level: int | None, magic: int) -> bytes:
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WBITS)
    return stream.compress(data) + stream.flush()


def _gunzip(data: Buffer, limit: int, magic: int) -> bytes:
    rest = bytes(data)
    end = _gzip_header_end(rest)
    if not end:
        raise CorruptPayload("gzip: no valid header")
    output: list[bytes] = []
    room = limit
    while end:
        # Java ignores the reserved bits of the flags, but zlib does not: skip such a header.
        is_odd = rest[3] & GZIP_RESERVED_FLAGS
        stream = zlib.decompressobj(-zlib.MAX_WBITS if is_odd else GZIP_WBITS)
        try:
            # Ask for one byte more than allowed, to notice an output above the limit.
            piece = stream.decompress(rest[end:] if is_odd else rest, room + 1)
        except zlib.error as error:
            raise CorruptPayload(f"gzip: {error}") from None
        if len(piece) > room:
            raise _too_large("gzip", limit)
        if not stream.eof:
            raise CorruptPayload("gzip: the stream ends early")
        output.append(piece)
        room -= len(piece)
        rest = stream.unused_data
        if is_odd:
            trailer = zlib.crc32(piece), len(piece) & 0xFFFF_FFFF
            if rest[: _GZIP_TRAILER.size] != _GZIP_TRAILER.pack(*trailer):
                raise CorruptPayload("gzip: wrong checksum or size")
            rest = rest[_GZIP_TRAILER.size :]
        # Like Java's GZIPInputStream: ignore the bytes after a member unless they begin a next one.
        end = _gzip_header_end(rest) if len(rest) > GZIP_REST_IGNORED else 0
    return b"".join(output)


def _gzip_header_end(data: bytes) -> int:
    """Return the size of a member's header; 0 if `data` does not begin with a whole, valid one."""
    if len(data) < GZIP_HEADER_SIZE or not data.startswith(GZIP_MAGIC):
        return 0
    flags, position = data[3], GZIP_HEADER_SIZE
    if flags & 0x04:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for text in (0x08, 0x10):  # a name, a comment
        if flags & text:
            found = data.find(0, position)
            if found < 0:
                return 0
            position = found + 1
    if flags & 0x02:
        expected = zlib.crc32(data[:position]) & 0xFFFF
        if int.from_bytes(data[position : position + 2], "little") != expected:
            return 0
        position += 2
    return position if position <= len(data) else 0


def _snappy(data: Buffer, level: int | None, magic: int) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    output = [XERIAL_HEADER]
    for position in range(0, len(view), XERIAL_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(view[position : position + XERIAL_BLOCK_SIZE]))
        output += (_SIZE.pack(len(block)), block)
    return b"".join(output)


def _unsnappy(data: Buffer, limit: int, magic: int) -> bytes:
    view = memoryview(data)
    if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _unsnappy_block(view, limit, limit)
    output: list[bytes] = []
    room = limit
    position = 0
    while position < len(view):
        if view[position : position + 4] == XERIAL_MAGIC[:4]:  # streams may be joined
            position += len(XERIAL_HEADER)
            if position > len(view):
                raise CorruptPayload("snappy: the stream ends inside its header")
            # As in Java, only the second and later headers must have a version.
            (version,) = _SIZE.unpack_from(view, position - 2 * _SIZE.size)
            if version < 1 and position > len(XERIAL_HEADER):
                raise CorruptPayload(f"snappy: stream of version {version}, expected 1 or later")
            continue
        if len(view) - position < _SIZE.size:
            break  # Java ignores an unfinished size
        (size,) = _SIZE.unpack_from(view, position)
        position += _SIZE.size
        if not 0 < size <= len(view) - position:
            raise CorruptPayload(f"snappy: block of {size} bytes, {len(view) - position} remain")
        block = _unsnappy_block(view[position : position + size], room, limit)
        output.append(block)
        room -= len(block)
        position += size
    return b"".join(output)


def _unsnappy_block(block: memoryview, room: int, limit: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        size = snappy.decompress_raw_len(block)
        if size > room:
            raise _too_large("snappy", limit)
        if size > SNAPPY_RATIO_MAX * len(block):
            # The library takes the memory that the block claims before it reads on.
            raise CorruptPayload(f"snappy: a block of {len(block)} bytes cannot become {size}")
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise CorruptPayload(f"snappy: {error}") from None


def _lz4(data: Buffer, level: int | None, magic: int) -> bytes:
    from lz4 import frame

    fast = level is None or level == LZ4_LEVEL_DEFAULT
    compressed: bytes = frame.compress(
        data,
        compression_level=0 if fast else max(level or 0, LZ4_LEVEL_HC_MIN),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    if magic == 0:
        # KAFKA-3160: readers of magic 0 expect the header's checksum to cover the frame's magic.
        wrong = xxh32_small(compressed[:6]) >> 8 & 0xFF
        compressed = compressed[:6] + bytes((wrong,)) + compressed[7:]
    return compressed


def _unlz4(data: Buffer, limit: int, magic: int) -> bytes:
    source = bytes(data)
    if len(source) < LZ4_HEADER_SIZE_MIN or source[:4] != LZ4_MAGIC:
        raise CorruptPayload("lz4: no frame header")
    flags = source[4]
    if flags & LZ4_VERSION_MASK != LZ4_VERSION:
        raise CorruptPayload(f"lz4: frame version {flags >> 6}, expected 1")
    if not flags & LZ4_INDEPENDENT_BIT:
        raise CorruptPayload("lz4: dependent blocks are not allowed")  # Kafka refuses them as well
    try:
        return _unlz4_frame(source, limit)
    except CorruptPayload:
        return _unlz4_frame(_plain_lz4(source, magic), limit)


def _unlz4_frame(source: bytes, limit: int) -> bytes:
    from lz4 import frame

    context = frame.create_decompression_context()
    output: list[bytes] = []
    room = limit
    position = 0
    while True:
        # The library allocates as much as it may return, so ask for a piece at a time.
        allowed = min(room + 1, LZ4_CHUNK_SIZE if output else max(4 * len(source), 64 << 10))
        try:
            piece, consumed, at_end = frame.decompress_chunk(
                context, memoryview(source)[position:], max_length=allowed
            )
        except (RuntimeError, ValueError) as error:
            raise CorruptPayload(f"lz4: {error}") from None
        if len(piece) > room:
            raise _too_large("lz4", limit)
        output.append(piece)
        room -= len(piece)
        position += consumed
        if at_end:
            return b"".join(output)
        if not piece and position == len(source):
            raise CorruptPayload("lz4: the frame ends early")


def _plain_lz4(source: bytes, magic: int) -> bytes:
    """Return a frame that the library refuses without the parts that Kafka does not check.

    They are the content's size and checksum and, with magic 0, the header's checksum. Any block of
    size 0 ends a frame, even an uncompressed block.
    """
    flags = source[4]
    end = 14 if flags & LZ4_CONTENT_SIZE_BIT else 6
    if magic > 0 and source[end : end + 1] != _lz4_checksum(source[4:end]):
        raise CorruptPayload("lz4: wrong checksum of the header")
    mark = _lz4_end_mark(source, end + 1, 4 if flags & LZ4_BLOCK_CHECKSUM_BIT else 0)
    tail_size = 4 if flags & LZ4_CONTENT_CHECKSUM_BIT else 0
    if mark + 4 + tail_size > len(source):
        raise CorruptPayload("lz4: the frame ends early")
    fields = bytes((flags & ~(LZ4_CONTENT_SIZE_BIT | LZ4_CONTENT_CHECKSUM_BIT), source[5]))
    return b"".join((LZ4_MAGIC, fields, _lz4_checksum(fields), source[end + 1 : mark], bytes(4)))


def _lz4_end_mark(source: bytes, position: int, checksum_size: int) -> int:
    """Return the position of the mark behind the blocks; the source's end if there is none."""
    while position + 4 <= len(source):
        size = int.from_bytes(source[position : position + 4], "little") & LZ4_BLOCK_SIZE_MASK
        if size == 0:
            return position
        position += 4 + size + checksum_size
    return len(source)


def _lz4_checksum(fields: bytes) -> bytes:
    return bytes((xxh32_small(fields) >> 8 & 0xFF,))


def _zstd(data: Buffer, level: int | None, magic: int) -> bytes:
    from zstandard import ZstdCompressor

    return ZstdCompressor(ZSTD_LEVEL_DEFAULT if level is None else level).compress(data)


def _unzstd(data: Buffer, limit: int, magic: int) -> bytes:
    from zstandard import ZstdDecompressor, ZstdError

    source = bytes(data)
    output: list[bytes] = []
    room = limit
    is_first = True
    try:
        while source:
            stream = ZstdDecompressor(max_window_size=ZSTD_WINDOW_SIZE_MAX).decompressobj()
            position = 0
            while not stream.eof:
                if position >= len(source):
                    if is_first:
                        raise CorruptPayload("zstd: the frame ends early")
                    break  # Java takes an unfinished frame after a whole one for the end
                # The library returns the whole output of the input that it gets, and 4 bytes of
                # input can become 128 KiB. So pass only as much as may fit into the room left.
                step = max(256, room // ZSTD_BLOCK_SIZE_MAX * ZSTD_BLOCK_BYTES_MIN)
                piece = stream.decompress(source[position : position + step])
                if len(piece) > room:
                    raise _too_large("zstd", limit)
                output.append(piece)
                room -= len(piece)
                position += step
            source = stream.unused_data + source[position:]
            is_first = False
    except ZstdError as error:
        raise CorruptPayload(f"zstd: {error}") from None
    return b"".join(output)


def xxh32_small(data: bytes) -> int:
    """Return the XXH32 hash, with seed 0, of fewer than 16 bytes, such as an LZ4 header."""
    assert len(data) < 16, len(data)
    prime1, prime2, prime3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
    prime4, prime5 = 0x27D4EB2F, 0x165667B1
    mask = 0xFFFF_FFFF
    result = prime5 + len(data)
    words_end = len(data) & ~3
    for position in range(0, words_end, 4):
        result += int.from_bytes(data[position : position + 4], "little") * prime3
        result = _rotated(result & mask, 17) * prime4 & mask
    for byte in data[words_end:]:
        result = _rotated((result + byte * prime5) & mask, 11) * prime1 & mask
    result = (result ^ result >> 15) * prime2 & mask
    result = (result ^ result >> 13) * prime3 & mask
    return result ^ result >> 16


def _rotated(word: int, count: int) -> int:
    return (word << count | word >> (32 - count)) & 0xFFFF_FFFF


def _too_large(name: str, limit: int) -> TooLarge:
    return TooLarge(f"{name}: decompresses to more than the allowed {limit} bytes")


COMPRESSORS: dict[int, Callable[[Buffer, int | None, int], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
DECOMPRESSORS: dict[int, Callable[[Buffer, int, int], bytes]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
