"""Writing lists of buffers to a non-blocking socket, without copying large ones."""

from __future__ import annotations

import os
from collections import deque
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

_HAS_GATHER = hasattr(os, "sysconf")
"""False on Windows, whose sockets have no sendmsg."""
_GATHER_COUNT_MAX = min(os.sysconf("SC_IOV_MAX"), 1024) if _HAS_GATHER else 16
_JOIN_SIZE_MAX = 32 * 1024
"""Buffers of at most this total size are joined: a copy costs less than a gather write of many."""


def _send_joined(sock: socket, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
    """Send with a plain `send`, for Windows: join small buffers first. Return the bytes sent."""
    first = buffers[0]
    if len(first) >= _JOIN_SIZE_MAX:
        return sock.send(first)
    joined = bytearray()
    for buffer in buffers:
        joined += buffer[: _JOIN_SIZE_MAX - len(joined)]
        if len(joined) == _JOIN_SIZE_MAX:
            break
    return sock.send(joined)


class SendQueue:
    """The bytes that a socket has not taken yet.

    Buffers are bytes or memoryviews of bytes. The queue does not copy them, so they must not change
    until the socket has taken them. `size` is the number of bytes in the queue, `sent_size` the
    number of bytes that the socket has taken so far.
    """

    __slots__ = ("_buffers", "sent_size", "size")

    def __init__(self) -> None:
        self._buffers: deque[bytes | bytearray | memoryview] = deque()
        self.size = 0
        self.sent_size = 0

    def send(self, sock: socket, buffers: Sequence[bytes | bytearray | memoryview]) -> bool:
        """Write `buffers` after all earlier ones; return whether nothing is left to write.

        Raises:
            OSError: the connection is broken.
        """
        if self.size:
            self._push(buffers, 0)
            return False
        try:
            if len(buffers) == 1:
                sent, size = sock.send(buffers[0]), len(buffers[0])
            else:
                size = sum(map(len, buffers))
                if size <= _JOIN_SIZE_MAX:
                    sent = sock.send(b"".join(buffers))
                elif len(buffers) <= _GATHER_COUNT_MAX:
                    sent = sock.sendmsg(buffers) if _HAS_GATHER else _send_joined(sock, buffers)
                else:
                    self._push(buffers, 0)
                    return self.flush(sock)
        except BlockingIOError:
            sent, size = 0, -1
        self.sent_size += sent
        if sent == size:
            return True
        self._push(buffers, sent)
        return not self.size

    def flush(self, sock: socket) -> bool:
        """Write until the socket takes no more; return whether nothing is left to write.

        Raises:
            OSError: the connection is broken.
        """
        buffers = self._buffers
        while buffers:
            batch = list(islice(buffers, _GATHER_COUNT_MAX))
            try:
                sent = sock.sendmsg(batch) if _HAS_GATHER else _send_joined(sock, batch)
            except BlockingIOError:
                return False
            self.size -= sent
            self.sent_size += sent
            for buffer in batch:
                if len(buffer) > sent:
                    if sent:
                        buffers[0] = memoryview(buffer)[sent:]
                    break
                sent -= len(buffer)
                buffers.popleft()
        return True

    def clear(self) -> None:
        self._buffers.clear()
        self.size = 0

    def _push(self, buffers: Sequence[bytes | bytearray | memoryview], sent: int) -> None:
        """Queue `buffers` without their first `sent` bytes, which the socket has taken."""
        for buffer in buffers:
            size = len(buffer)
            if sent >= size:
                sent -= size
                continue
            self._buffers.append(memoryview(buffer)[sent:] if sent else buffer)
            self.size += size - sent
            sent = 0
