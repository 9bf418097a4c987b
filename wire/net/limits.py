"""The limits of a listener."""

from __future__ import annotations

from struct import Struct

MIB = 1024 * 1024

SIZE = Struct(">i")
size_at = SIZE.unpack_from


class ListenerLimits:
    """Limits of one listener, all on by default, with Kafka's names in brackets.

    They must not change while the listener runs.

    request_size_max: size of a request [socket.request.max.bytes].
    receive_size_max: memory for the requests that are being received, over all connections.
        Requests that fit into a receive buffer do not count. Without memory a request waits
        [queued.max.request.bytes].
    response_size_max: bytes of unread responses over all connections. Above this the listener
        disconnects the peer that has not read for the longest time.
    connection_count_max: connections in total [max.connections].
    address_connection_count_max: connections from one address [max.connections.per.ip].
    accept_rate_max: new connections in a second [max.connection.creation.rate].
    limit_loopback: apply the two limits above to loopback peers as well. Off by default: processes
        of one machine share an address, and a test suite opens connections as fast as it can.
    idle_ms: silence after which a connection is closed [connections.max.idle.ms].
    frame_grace_ms, frame_rate_min: a request must arrive, from its first to its last byte, within
        `frame_grace_ms` plus the time for its size at `frame_rate_min` bytes a second.
    write_stall_ms: the time for which a peer may leave a response unread.
    """

    def __init__(
        self,
        *,
        request_size_max: int = 100 * MIB,
        receive_size_max: int = 128 * MIB,
        response_size_max: int = 256 * MIB,
        connection_count_max: int = 1_000,
        address_connection_count_max: int = 256,
        accept_rate_max: int = 200,
        limit_loopback: bool = False,
        idle_ms: int = 10 * 60 * 1_000,
        frame_grace_ms: int = 10_000,
        frame_rate_min: int = 64 * 1024,
        write_stall_ms: int = 30_000,
    ) -> None:
        self.request_size_max = request_size_max
        self.receive_size_max = receive_size_max
        self.response_size_max = response_size_max
        self.connection_count_max = connection_count_max
        self.address_connection_count_max = address_connection_count_max
        self.accept_rate_max = accept_rate_max
        self.limit_loopback = limit_loopback
        self.idle_ms = idle_ms
        self.frame_grace_ms = frame_grace_ms
        self.frame_rate_min = frame_rate_min
        self.write_stall_ms = write_stall_ms


def size_needed(view: memoryview, start: int, end: int) -> int:
    """Return how many bytes from `start` on are needed next: first the size, then the frame."""
    if end - start < SIZE.size:
        return SIZE.size
    return SIZE.size + int(size_at(view, start)[0])
