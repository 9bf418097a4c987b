"""A broker without a client library: fetches by plain sockets, and the wake-up of a long poll.

A client library would dominate the result: reading 192 MB takes confluent-kafka six times the CPU
time of either broker. The reader here only finds the ends of batches.
"""

from __future__ import annotations

import socket
import struct
import time

import wire
from wire.api_keys import ApiKey
from wire.headers import request_header_version, response_header_version
from wire.records import build_batch, iter_batches
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Place = tuple[str, int]

FETCH_VERSION = 11
PRODUCE_VERSION = 7
SECONDS_MAX = 60
POSITION = 4 + 4  # of a response's body: size, correlation id


class Link:
    """A blocking connection for one request at a time."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._socket = socket.create_connection((host, int(port)), SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 16)

    def send(self, frame: bytes) -> None:
        """Send a request made by `framed`."""
        self._socket.sendall(frame)

    def receive(self) -> memoryview:
        """Return the next response, complete; valid until the next one."""
        head = self._socket.recv(4, socket.MSG_WAITALL)
        (size,) = struct.unpack(">i", head)
        if len(self._buffer) < size + 4:
            self._buffer = bytearray(2 * size)
        view = memoryview(self._buffer)
        received = 4
        while received < size + 4:
            received += self._socket.recv_into(view[received : size + 4])
        return view[: size + 4]

    def close(self) -> None:
        self._socket.close()


def framed(api_key: int, version: int, request: object) -> bytes:
    """Return a request as bytes with its frame."""
    assert request_header_version(api_key, version) == 1
    body = struct.pack(">hhih", api_key, version, 1, -1) + wire.encode(request, version)
    return struct.pack(">i", len(body)) + body


def fetch_request(places: dict[Place, int], size_max: int, wait_ms: int) -> bytes:
    """Fetch from these offsets, at most `size_max` bytes of each partition."""
    topics: dict[str, list[FetchPartition]] = {}
    for (topic, partition), offset in places.items():
        asked = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=size_max
        )
        topics.setdefault(topic, []).append(asked)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        topics=[FetchTopic(topic=name, partitions=asked) for name, asked in topics.items()],
    )
    return framed(ApiKey.FETCH, FETCH_VERSION, request)


def fetch_all(address: str, places: list[Place], count: int, size_max: int) -> float:
    """Return the records a second of fetching everything, all partitions in each request."""
    assert response_header_version(ApiKey.FETCH, FETCH_VERSION) == 0
    link = Link(address)
    offsets = dict.fromkeys(places, 0)
    seen = 0
    started = time.perf_counter()
    while seen < count:
        link.send(fetch_request(offsets, size_max, 500))
        response = wire.decode(FetchResponse, FETCH_VERSION, link.receive(), POSITION)
        before = seen
        for topic in response.responses:
            for found in topic.partitions:
                assert not found.error_code, found.error_code
                place = topic.topic, found.partition_index
                for batch in iter_batches(found.records or b""):
                    seen += batch.next_offset - offsets[place]
                    offsets[place] = batch.next_offset
        assert seen > before, f"{seen} of {count}"
    link.close()
    return count / (time.perf_counter() - started)


def wake_up(address: str, place: Place, count: int) -> list[float]:
    """Return sorted seconds from a Produce to the complete answer of a waiting fetch."""
    topic, partition = place
    reader, writer = Link(address), Link(address)
    batch = build_batch([b"v" * 100], timestamps=int(time.time() * 1000))
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    produce = framed(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    delays = []
    offset = 0
    while len(delays) < count:
        reader.send(fetch_request({place: offset}, 1 << 20, 500))
        time.sleep(0.001)
        sent = time.perf_counter()
        writer.send(produce)
        reader.receive()
        delays.append(time.perf_counter() - sent)
        writer.receive()
        offset += 1
    reader.close()
    writer.close()
    return sorted(delays)
