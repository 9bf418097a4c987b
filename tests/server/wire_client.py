"""A blocking client that sends and receives frames, for tests of the wire."""

from __future__ import annotations

import socket
from typing import Any

from wire.api_keys import ApiKey
from wire.connection import ClientConnection
from wire.records.encode.builder import build_batch
from wire.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class WireClient:
    """One connection; every wait has a time limit."""

    def __init__(self, address: tuple[str, int], client_id: str | None = "tester") -> None:
        self.sock = socket.create_connection(address, timeout=20)
        self._connection = ClientConnection(client_id)

    def send(self, request: Any, version: int, *, expect_response: bool = True) -> None:
        buffers = self._connection.send(request, version, expect_response=expect_response)
        self.sock.sendall(b"".join(map(bytes, buffers)))

    def receive(self) -> Any:
        """Return the next response; frames of pipelined requests come in order."""
        return self._connection.receive(self.receive_frame())[1]

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def send_bytes(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive_frame(self) -> bytes:
        return self._receive(int.from_bytes(self._receive(4), "big"))

    def is_closed(self) -> bool:
        """Wait for the end of the connection; return False if bytes come instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def versions(self) -> ApiVersionsResponse:
        response: ApiVersionsResponse = self.ask(
            ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 3
        )
        return response

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self.sock.recv(size - len(received))
            assert more, f"closed after {len(received)} of {size} bytes"
            received += more
        return bytes(received)


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def header(key: int, version: int, correlation_id: int, client_id: bytes = b"raw") -> bytes:
    """Return a request header of version 1."""
    return (
        key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + correlation_id.to_bytes(4, "big", signed=True)
        + len(client_id).to_bytes(2, "big")
        + client_id
    )


def api_versions_frame(version: int, correlation_id: int) -> bytes:
    """Return an ApiVersions request of any version, with the empty body of version 0."""
    tags = b"\0" if version >= 3 else b""
    return frame(header(ApiKey.API_VERSIONS, version, correlation_id) + tags)


def produce(topic: str, *values: bytes, acks: int = -1, partition: int = 0) -> ProduceRequest:
    """Return a Produce request, up to version 12."""
    records = build_batch(list(values), timestamps=1)
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch(topic: str, offset: int, *, wait_ms: int = 0, partition: int = 0) -> FetchRequest:
    """Return a Fetch request up to version 12, without a session, for at least one byte."""
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
        session_epoch=-1,
    )


def fetched_values(response: Any) -> list[bytes | None]:
    """Return the values in a Fetch response of one partition."""
    from wire.records.batch import iter_batches

    (topic,) = response.responses
    (partition,) = topic.partitions
    assert partition.error_code == 0, partition
    return [
        record.value if record.value is None else bytes(record.value)
        for batch in iter_batches(memoryview(partition.records or b""))
        for record in batch.records()
    ]
