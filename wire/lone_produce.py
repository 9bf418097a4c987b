"""Produce requests of one batch, and their good answers, as a server reads and writes them.

    lone = LoneProduce()
    request = lone.decode(version, frame, position)
    buffers = lone.respond(correlation_id, version, response)

Nearly all that a producer sends has one partition and no transaction; from one request to the next
only the records differ, from one answer to the next the offsets. So what is around them is read,
and written, by the one codec the first time, and known by its bytes from then on. Everything else
is the codec's as ever. The client's side of this is `produce_template`.
"""

from __future__ import annotations

from struct import Struct

from wire.api_keys import ApiKey
from wire.compiler import decode_from, encode
from wire.connection import ServerConnection
from wire.produce_template import FIRST_VERSION, IDS_SINCE, ProduceTarget, good_answer
from wire.schema import NO_TAGS
from wire.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from wire.schema import Payload
    from wire.schemas.produce import ProduceResponse

    # How an answer is packed, its size, what is before the offsets and what behind them.
    _Packed = tuple[Callable[..., bytes], int, bytes, bytes]

# A flexible request: transactional id 1 (none), acks 2, timeout 4, topics 1 (one of them), then
# name 1 + size or id 16, partitions 1 (one of them), index 4; then the records and their size,
# then three counts of tagged fields.
_NAME_AT = 8
_AFTER_NAME = 5
_HEAD_SIZE_WITH_ID = 29
_TAIL = b"\0\0\0"
_SIZE_MIN = 64
_NO_RECORDS = b"\x01" + _TAIL

_KNOWN_MAX = 4096
"""Partitions that become known; of any more every request is the codec's."""

_CORRELATION_ID_SIZE = 4
_OFFSETS = Struct(">qqq")
_MARKS = (0x0123_4567_89AB_CDEF, 0x1122_3344_5566_7788, 0x0FED_CBA9_8765_4321)
_NO_LEADER = PartitionProduceResponse().current_leader

_new: Any = object.__new__


class LoneProduce:
    """What one server knows of the produce requests that come to it. Not for several threads."""

    __slots__ = ("_answers", "_elements_max", "_heads", "_known_max", "_respond")

    def __init__(self, elements_max: int | None = None, *, known_max: int = _KNOWN_MAX) -> None:
        """`elements_max` is that of `wire.compiler.decode_from`.

        `known_max`: partitions that become known, by name and by id each.
        """
        self._known_max = known_max
        self._elements_max = elements_max
        self._respond = ServerConnection().respond
        # By the bytes before the records: what they say. Two kinds, without and with topic ids.
        self._heads: tuple[dict[bytes, ProduceTarget], dict[bytes, ProduceTarget]] = ({}, {})
        # By version, topic name and id, partition.
        self._answers: dict[tuple[int, str, bytes, int], _Packed] = {}

    @property
    def known_count(self) -> int:
        """What is known of requests and of answers, in all."""
        return sum(map(len, self._heads)) + len(self._answers)

    def decode(self, version: int, frame: Payload, position: int) -> ProduceRequest:
        """The request whose body starts at `position`; its records are a view of `frame`.

        Raises as `wire.decode` does.
        """
        size = len(frame)
        if version < FIRST_VERSION or size < position + _SIZE_MIN:
            return self._decode(version, frame, position)
        if version < IDS_SINCE:
            start = position + _NAME_AT + frame[position + _NAME_AT] + _AFTER_NAME
            heads = self._heads[0]
        else:
            start = position + _HEAD_SIZE_WITH_ID
            heads = self._heads[1]
        head = bytes(frame[position:start])
        known = heads.get(head)
        if known is None:
            request = self._decode(version, frame, position)
            target = _lone_target(request, head, version) if len(heads) < self._known_max else None
            if target is not None:
                heads[head] = target
            return request
        end = size - len(_TAIL)
        records_end = 0
        if end - start > 3:
            # Small, large and huge batches are left to the codec.
            low, middle, high = frame[start : start + 3]
            if low >= 128 > middle:
                start += 2
                records_end = start + (low & 127 | middle << 7) - 1
            elif low >= 128 > high:
                start += 3
                records_end = start + (low & 127 | (middle & 127) << 7 | high << 14) - 1
        if records_end != end or frame[end:] != _TAIL:
            return self._decode(version, frame, position)
        data = _new(PartitionProduceData)
        topic = _new(TopicProduceData)
        request = _new(ProduceRequest)
        request.acks, request.timeout_ms = known.acks, known.timeout_ms
        topic.name, topic.topic_id = known.name, known.topic_id
        data.index = known.index
        data.records = memoryview(frame)[start:end]
        topic.partition_data = [data]
        request.topic_data = [topic]
        request.transactional_id = None
        data.unknown_tags = topic.unknown_tags = request.unknown_tags = NO_TAGS
        return request  # type: ignore[no-any-return]

    def _decode(self, version: int, frame: Payload, position: int) -> ProduceRequest:
        return decode_from(ProduceRequest, version, frame, position, self._elements_max)[0]

    def respond(
        self, correlation_id: int, version: int, response: ProduceResponse
    ) -> Sequence[Payload]:
        """The frame of a response, in one buffer or several. Raises as `wire.encode` does."""
        topics = response.responses
        if version < FIRST_VERSION or len(topics) != 1 or len(topics[0].partition_responses) != 1:
            return self._respond(correlation_id, ApiKey.PRODUCE, version, response)
        whole: Any = response
        topic: Any = topics[0]
        answer: Any = topic.partition_responses[0]
        if (
            answer.error_code
            or answer.record_errors
            or answer.error_message is not None
            or answer.current_leader is not _NO_LEADER
            or answer.unknown_tags
            or topic.unknown_tags
            or whole.unknown_tags
            or whole.throttle_time_ms
            or whole.node_endpoints
        ):
            return self._respond(correlation_id, ApiKey.PRODUCE, version, response)
        key = version, topic.name, topic.topic_id, answer.index
        known = self._answers.get(key)
        if known is None:
            if len(self._answers) >= self._known_max:
                return self._respond(correlation_id, ApiKey.PRODUCE, version, response)
            self._answers[key] = known = _packed(*key)
        pack, size, before, after = known
        offsets = answer.base_offset, answer.log_append_time_ms, answer.log_start_offset
        return (pack(size, correlation_id, before, *offsets, after),)


def _packed(version: int, name: str, topic_id: bytes, index: int) -> _Packed:
    """How the good answers about that partition are packed."""
    marked = good_answer(version, name, topic_id, index, _MARKS)[_CORRELATION_ID_SIZE:]
    before, after = marked.split(_OFFSETS.pack(*_MARKS))
    form = Struct(f">ii{len(before)}s{_OFFSETS.format[1:]}{len(after)}s")
    return form.pack, form.size - 4, before, after


def _lone_target(request: ProduceRequest, head: bytes, version: int) -> ProduceTarget | None:
    """What `head` says, if it, and it alone, says all that the request does beside the records.

    Then the codec reads the same from whatever begins with these bytes.
    """
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        return None
    (topic,) = topics
    target = ProduceTarget(
        name=topic.name,
        topic_id=topic.topic_id,
        index=topic.partition_data[0].index,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
    )
    is_all = encode(target.message(b""), version) == head + _NO_RECORDS
    return target if is_all else None
