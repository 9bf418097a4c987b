"""Frames: each message on a connection is an int32 size, then that many bytes.

`FrameReader` takes bytes as they arrive and returns whole frames. The socket reads straight into
the reader's memory, and frames are views of it, so received record batches are never copied:

    reader = FrameReader(size_max=104857600)
    count = socket.recv_into(reader.free_space())
    for frame in reader.received(count):
        ...

The reader never writes again into the memory of returned frames: callers may keep them.
"""

from __future__ import annotations

import struct

from wire.errors import RemoteProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.schema import Payload

FRAME_SIZE_MAX = 100 * 1024 * 1024
"""Largest frame by default, as Kafka's socket.request.max.bytes."""

CHUNK_SIZE_FIRST = 4 * 1024
CHUNK_SIZE_MAX = 64 * 1024

_SIZE = struct.Struct(">i")
_pack_size = _SIZE.pack
_FEW = 64
_TLS_RECORDS = (0x15, 0x16)  # alert, handshake
_TLS_MAJOR = 3


class InvalidFrameSize(RemoteProtocolError):
    """The size before a frame is negative or above the limit: the connection must be closed."""

    def __init__(self, size: int, size_max: int) -> None:
        text = f"frame of {size} bytes; allowed are 0 to {size_max}"
        super().__init__(text + _what_it_may_be(_SIZE.pack(size)))
        self.size = size


def _what_it_may_be(head: bytes) -> str:
    """Return a hint if the first bytes look like another protocol, else an empty text."""
    if head[0] in _TLS_RECORDS and head[1] == _TLS_MAJOR:
        return ": these are bytes of TLS, from a peer that expects an encrypted connection"
    if head.isascii() and head.decode().isprintable():
        return f": the peer's bytes are {head!r}, it does not speak the Kafka protocol"
    return ""


class FrameReader:
    """Cuts a stream of bytes into frames.

    Memory comes in chunks, small at first so that idle connections cost little. If a frame does not
    fit into the rest of a chunk, its received part is copied, once, to a new chunk that has room
    for the whole frame.
    """

    __slots__ = ("_chunk", "_chunk_size", "_end", "_start", "size_max")

    def __init__(self, size_max: int = FRAME_SIZE_MAX) -> None:
        self.size_max = size_max
        self._chunk_size = CHUNK_SIZE_FIRST
        self._chunk = memoryview(bytearray(CHUNK_SIZE_FIRST))
        self._start = 0
        self._end = 0

    def free_space(self) -> memoryview:
        """Return memory of at least one byte for the next bytes of the stream."""
        return self._chunk[self._end :]

    def received(self, count: int) -> list[memoryview]:
        """Take `count` bytes, written to the start of `free_space`; return the finished frames.

        Raises:
            InvalidFrameSize: the size of a frame is not allowed. Earlier frames that the same call
                has finished are lost.
        """
        self._end += count
        frames = []
        chunk, start, end = self._chunk, self._start, self._end
        missing = _SIZE.size
        while end - start >= _SIZE.size:
            size = _SIZE.unpack_from(chunk, start)[0]
            if not 0 <= size <= self.size_max:
                raise InvalidFrameSize(size, self.size_max)
            stop = start + _SIZE.size + size
            if stop > end:
                missing = _SIZE.size + size
                break
            frames.append(chunk[start + _SIZE.size : stop])
            start = stop
        self._start = start
        if start + missing > len(chunk) or end == len(chunk):
            self._move(missing)
        return frames

    def feed(self, data: Payload) -> list[memoryview]:
        """Copy bytes into the reader; return the finished frames, as `received` does."""
        frames = []
        data = memoryview(data)
        while data:
            space = self.free_space()
            count = min(len(space), len(data))
            space[:count] = data[:count]
            frames += self.received(count)
            data = data[count:]
        return frames

    def _move(self, size: int) -> None:
        """Move the unfinished frame to a new chunk with room for its `size` bytes."""
        rest = self._chunk[self._start : self._end]
        self._chunk_size = min(self._chunk_size * 2, CHUNK_SIZE_MAX)
        self._chunk = memoryview(bytearray(max(self._chunk_size, size, len(rest) + 1)))
        self._chunk[: len(rest)] = rest
        self._start, self._end = 0, len(rest)


def frame(buffers: Iterable[Payload]) -> list[Payload]:
    """Return the buffers of a message as a frame: the size, then the buffers.

    >>> frame([b"abc", b"de"])
    [b'\\x00\\x00\\x00\\x05', b'abc', b'de']
    """
    parts = list(buffers)
    return [_SIZE.pack(sum(map(len, parts))), *parts]


def frame_pieces(out: list[Payload], buffers: list[Payload]) -> list[Payload]:
    """Return the frame of the message that `encode_into` left in `buffers` and `out`.

    A message without large payloads becomes one buffer.
    """
    if len(out) > _FEW and not buffers:
        # Join a long message together with its size, so that no third copy of it is made.
        return [b"".join((_pack_size(sum(map(len, out))), *out))]
    if not buffers:
        body = b"".join(out)
        return [_pack_size(len(body)) + body]
    if out:
        buffers.append(b"".join(out))
    # Join the size to the bytes before the first payload, because these are few.
    buffers[0] = _SIZE.pack(sum(map(len, buffers))) + bytes(buffers[0])
    return buffers
