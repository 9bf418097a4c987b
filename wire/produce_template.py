"""Produce requests of one partition, which are alike but for the records; and their answers.

    target = ProduceTarget(name="t", topic_id=topic_id, index=0, acks=-1, timeout_ms=30_000)
    template = ProduceTemplate(target, version=13, client_id="me")
    buffers = template.frame(correlation_id, records)
    offset = template.base_offset(frame_of_the_response)

What is around the records is encoded once, by the one encoder. The first good answer is decoded
as any; one that differs from it in the base offset only says just as much, which a comparison of
bytes proves. Making the messages costs 25 us a request, this 4.
"""

from __future__ import annotations

from struct import Struct

from wire.api_keys import ApiKey
from wire.compiler import encode
from wire.headers import encode_request_header, encode_response_header
from wire.primitives import uvarint
from wire.schema import declaration
from wire.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schema import Payload

FIRST_VERSION = 9
"""The first flexible one: before it a template would look different, and brokers are old."""

IDS_SINCE = 13
"""From here on topics have ids in place of names."""

_HEAD = Struct(">ihhi")
"""Frame size, API key, version, correlation id."""
_AFTER_HEAD = 8
"""Where a request goes on behind the correlation id; it has no frame size in front here."""
_CORRELATION_ID_SIZE = 4
_BASE_OFFSET = Struct(">q")
_MARK = 0x0123_4567_89AB_CDEF
_LESSONS_MAX = 8
"""So many answers in a row that were learnt for nothing: they differ each time."""


class ProduceTarget:
    """A partition, and what all requests for it say beside the records."""

    __slots__ = ("acks", "index", "name", "timeout_ms", "topic_id")

    def __init__(
        self, *, name: str, topic_id: bytes, index: int, acks: int, timeout_ms: int
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index = index
        self.acks = acks
        self.timeout_ms = timeout_ms

    def message(self, records: Payload) -> ProduceRequest:
        """The request with these records."""
        data = PartitionProduceData(index=self.index, records=records)
        topic = TopicProduceData(name=self.name, topic_id=self.topic_id, partition_data=[data])
        return ProduceRequest(acks=self.acks, timeout_ms=self.timeout_ms, topic_data=[topic])


class RecordsRequest:
    """A produce request, not yet a message: the records, and what they are for."""

    __slots__ = ("target", "records")
    __declaration__ = None
    """Where messages have what they are."""

    def __init__(self, target: ProduceTarget, records: Payload) -> None:
        self.target = target
        self.records = records


def template_version(served: tuple[int, int] | None) -> int | None:
    """The newest version that both sides know; None if there is none, or too old a one."""
    if served is None:
        return None
    known = declaration(ProduceRequest)
    version = min(known.last_version, served[1])
    return version if version >= max(FIRST_VERSION, served[0]) else None


def good_answer(
    version: int, name: str, topic_id: bytes, index: int, offsets: tuple[int, int, int]
) -> bytes:
    """A response, with its header, that only says where the records of one partition are.

    The correlation id is 0. `offsets` are the base offset, the time of appending, the log start.
    """
    base_offset, append_time, start_offset = offsets
    answer = PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=append_time,
        log_start_offset=start_offset,
    )
    topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[answer])
    head = encode_response_header(api_key=ApiKey.PRODUCE, api_version=version, correlation_id=0)
    return head + encode(ProduceResponse(responses=[topic]), version)


class ProduceTemplate:
    """The bytes that the requests of a target share, and their good answers, on one connection."""

    __slots__ = (
        "_after",
        "_answer_end",
        "_answer_size",
        "_answer_start",
        "_before",
        "_head",
        "_lesson_count",
        "_offset_position",
        "_records_size",
        "_size",
        "target",
        "version",
    )

    def __init__(self, target: ProduceTarget, version: int, client_id: str | None) -> None:
        assert version >= FIRST_VERSION, version
        assert target.acks != 0, "nothing would be answered"
        self.target = target
        self.version = version
        head = encode_request_header(
            api_key=ApiKey.PRODUCE, api_version=version, correlation_id=0, client_id=client_id
        )
        body = encode(target.message(b""), version)
        # The records are their size and one more, then their bytes: here one byte for none.
        marked = encode(target.message(b"\xff"), version)
        position = next(at for at, byte in enumerate(body) if byte != marked[at])
        assert (body[position], marked[position : position + 2]) == (1, b"\x02\xff")
        self._before = head[_AFTER_HEAD:] + body[:position]
        self._after = body[position + 1 :]
        self._records_size = -1
        """What `_head` and `_size`, that of the frame, are for."""
        self._head = b""
        self._size = 0
        self._lesson_count = 0
        self._answer_start = self._answer_end = b""
        self._answer_size = -1
        self._offset_position = 0

    def frame(self, correlation_id: int, records: Payload) -> list[Payload]:
        """The frame of the request with these records, which are among its buffers."""
        size = len(records)
        if size != self._records_size:
            self._records_size = size
            self._head = self._before + uvarint(size + 1)
            self._size = _AFTER_HEAD + len(self._head) + size + len(self._after)
        head = _HEAD.pack(self._size, ApiKey.PRODUCE, self.version, correlation_id) + self._head
        return [head, records, self._after]

    def base_offset(self, frame: Payload) -> int | None:
        """Where a good answer says the records are; None when it must be decoded to know more.

        Not looked at: the correlation id.
        """
        if len(frame) != self._answer_size:
            return None
        answer = bytes(frame)
        if not answer.startswith(self._answer_start, _CORRELATION_ID_SIZE):
            return None
        if not answer.endswith(self._answer_end):
            return None
        self._lesson_count = 0
        offset: int = _BASE_OFFSET.unpack_from(answer, self._offset_position)[0]
        return offset

    def learn(self, frame: Payload, response: ProduceResponse) -> None:
        """Know the next answer by this one, if it is good and says nothing but the offset.

        `response` is what was decoded from `frame`.
        """
        if self._lesson_count >= _LESSONS_MAX or not self._is_plain(response):
            return
        self._lesson_count += 1
        (topic,) = response.responses
        (answer,) = topic.partition_responses
        offsets = _MARK, answer.log_append_time_ms, answer.log_start_offset
        whole = good_answer(self.version, topic.name, topic.topic_id, answer.index, offsets)
        mark = _BASE_OFFSET.pack(_MARK)
        position = whole.find(mark)
        end = position + _BASE_OFFSET.size
        start = _CORRELATION_ID_SIZE
        alike = whole[start:position], _BASE_OFFSET.pack(answer.base_offset), whole[end:]
        if whole.count(mark) != 1 or b"".join(alike) != bytes(frame)[start:]:
            return  # it has tagged fields that nobody here knows
        self._answer_start, _, self._answer_end = alike
        self._answer_size = len(whole)
        self._offset_position = position

    def _is_plain(self, response: ProduceResponse) -> bool:
        """Does it say that the target's records are written as they are, and no more?"""
        if response.throttle_time_ms or len(response.responses) != 1:
            return False
        (topic,) = response.responses
        if len(topic.partition_responses) != 1:
            return False
        (answer,) = topic.partition_responses
        target = self.target
        by_id = self.version >= IDS_SINCE
        is_ours = topic.topic_id == target.topic_id if by_id else topic.name == target.name
        is_written = answer.error_code == 0 and answer.log_append_time_ms == -1
        return is_ours and answer.index == target.index and is_written
