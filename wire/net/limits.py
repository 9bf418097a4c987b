"""The limits of a listener. Every limit is on by default; Kafka's name is in brackets."""

from __future__ import annotations

MIB = 1024 * 1024


class ListenerLimits:
    """Limits of one listener. Must not change while it runs.

    produce_size_max: size of a Produce request [socket.request.max.bytes].
    request_size_max: size of any other request.
    receive_size_max: bytes of all requests being received that are larger than a receive buffer,
        over all connections; further requests wait [queued.max.request.bytes].
    response_size_max: bytes of unread responses over all connections. Above it the listener
        disconnects the peer that has not read for the longest time.
    connection_count_max: connections in total [max.connections].
    address_connection_count_max: connections from one address [max.connections.per.ip].
    accept_rate_max: new connections in a second [max.connection.creation.rate].
    limit_loopback: apply the last two limits to loopback peers as well. Off by default: processes
        of one machine share an address, and a test suite opens connections as fast as it can.
    idle_ms: silence after which a connection is closed [connections.max.idle.ms].
    frame_grace_ms, frame_rate_min: the time for a request from its first to its last byte:
        `frame_grace_ms` plus its size at `frame_rate_min` bytes a second.
    write_stall_ms: the time for which a peer may leave a response unread.
    """

    def __init__(
        self,
        *,
        produce_size_max: int = 100 * MIB,
        request_size_max: int = MIB,
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
        self.produce_size_max = produce_size_max
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
