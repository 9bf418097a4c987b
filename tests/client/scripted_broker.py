"""A broker in a hundred lines with scripted faults, which a client must survive.

It keeps the batches of each partition and answers produce, fetch, offsets and metadata from them.
`faults` holds functions that see each request first and may answer instead.
"""

from __future__ import annotations

from typing import Any

from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.pending import Pending
from embedlog.transport import InProcessTransport
from wire.api_keys import ApiKey
from wire.records import RecordBatch, iter_batches, stamp
from wire.schemas import fetch, init_producer_id, list_offsets, metadata, produce

VERSIONS = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (0, 18),
    ApiKey.LIST_OFFSETS: (0, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.INIT_PRODUCER_ID: (0, 6),
}

PASS = object()
"""The result of a fault that lets the broker answer."""


class Context:
    def __init__(self, api_key: int, api_version: int) -> None:
        self.api_key = api_key
        self.api_version = api_version


class ScriptedBroker:
    def __init__(self, topics: dict[str, int], runtime: Runtime | None = None) -> None:
        self.runtime = runtime or real_runtime()
        self.topics = dict(topics)
        self.ids = {name: bytes([number + 1]) * 16 for number, name in enumerate(topics)}
        self.logs: dict[tuple[str, int], list[bytes]] = {}
        self.start: dict[tuple[str, int], int] = {}
        self.requests: list[Any] = []
        self.faults: list[Any] = []
        self.next_producer_id = 1000
        self.leader_epoch = 0
        self.leaders: dict[tuple[str, int], int] = {}
        """The leaders of partitions that node 1 does not lead."""

    def transport(self) -> InProcessTransport:
        return InProcessTransport(self.handle, Context, VERSIONS, self.runtime)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    def handle(self, context: Context, request: Any) -> Any:
        self.requests.append(request)
        for fault in list(self.faults):
            answer = fault(request)
            if answer is not PASS:
                return answer
        return self.answer(request)

    def answer(self, request: Any) -> Any:
        return getattr(self, "_" + type(request).__name__)(request)

    def end_offset(self, topic: str, partition: int) -> int:
        batches = self.logs.get((topic, partition))
        return RecordBatch(batches[-1]).next_offset if batches else 0

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [
            record.value
            for data in self.logs.get((topic, partition), [])
            for record in RecordBatch(data).records()
        ]

    def name_of(self, topic: Any, name: str) -> str:
        by_id = {topic_id: known for known, topic_id in self.ids.items()}
        return by_id.get(topic.topic_id, name)

    def append(self, topic: str, partition: int, records: Any) -> int:
        first = self.end_offset(topic, partition)
        data = bytearray(bytes(records))
        stamp(data, base_offset=first, leader_epoch=self.leader_epoch)
        self.logs.setdefault((topic, partition), []).append(bytes(data))
        return first

    def _MetadataRequest(self, request: Any) -> Any:
        names = list(self.topics) if request.topics is None else [t.name for t in request.topics]
        described = []
        for name in names:
            if name not in self.topics:
                described.append(metadata.MetadataResponseTopic(name=name, error_code=3))
                continue
            partitions = [
                metadata.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=self.leaders.get((name, index), 1),
                    leader_epoch=self.leader_epoch,
                    replica_nodes=[1],
                    isr_nodes=[1],
                )
                for index in range(self.topics[name])
            ]
            described.append(
                metadata.MetadataResponseTopic(
                    name=name, topic_id=self.ids[name], partitions=partitions
                )
            )
        nodes = [
            metadata.MetadataResponseBroker(node_id=number, host="localhost", port=9091 + number)
            for number in sorted({1, *self.leaders.values()})
        ]
        return metadata.MetadataResponse(
            brokers=nodes, cluster_id="scripted", controller_id=1, topics=described
        )

    def _ProduceRequest(self, request: Any) -> Any:
        responses = []
        for topic in request.topic_data:
            name = self.name_of(topic, topic.name)
            answers = []
            for data in topic.partition_data:
                for batch in iter_batches(bytes(data.records)):
                    batch.check_crc()
                first = self.append(name, data.index, data.records)
                answers.append(
                    produce.PartitionProduceResponse(index=data.index, base_offset=first)
                )
            responses.append(
                produce.TopicProduceResponse(
                    name=name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        return None if request.acks == 0 else produce.ProduceResponse(responses=responses)

    def _InitProducerIdRequest(self, request: Any) -> Any:
        self.next_producer_id += 1
        return init_producer_id.InitProducerIdResponse(producer_id=self.next_producer_id)

    def _ListOffsetsRequest(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                key = (topic.name, asked.partition_index)
                offset = self.start.get(key, 0) if asked.timestamp == -2 else self.end_offset(*key)
                answers.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index, offset=offset, leader_epoch=0
                    )
                )
            topics.append(
                list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=answers)
            )
        return list_offsets.ListOffsetsResponse(topics=topics)

    def _FetchRequest(self, request: Any) -> Any:
        topics = []
        found = False
        for topic in request.topics:
            name = self.name_of(topic, topic.topic)
            answers = []
            for asked in topic.partitions:
                answer = self.fetch_partition(name, asked)
                found |= bool(answer.records or answer.error_code)
                found |= answer.preferred_read_replica >= 0
                answers.append(answer)
            topics.append(
                fetch.FetchableTopicResponse(
                    topic=name, topic_id=topic.topic_id, partitions=answers
                )
            )
        response = fetch.FetchResponse(responses=topics)
        if found or not request.max_wait_ms:
            return response
        waiting: Pending[Any] = Pending()
        return waiting

    def fetch_partition(self, name: str, asked: Any) -> Any:
        key = (name, asked.partition)
        end = self.end_offset(*key)
        start = self.start.get(key, 0)
        if not start <= asked.fetch_offset <= end:
            return fetch.PartitionData(
                partition_index=asked.partition, error_code=1, high_watermark=-1, records=b""
            )
        data = b"".join(
            batch
            for batch in self.logs.get(key, [])
            if RecordBatch(batch).next_offset > asked.fetch_offset
        )
        return fetch.PartitionData(
            partition_index=asked.partition,
            high_watermark=end,
            last_stable_offset=end,
            log_start_offset=start,
            aborted_transactions=None,
            records=memoryview(data),
        )
