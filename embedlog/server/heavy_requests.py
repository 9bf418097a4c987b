"""Requests that take long are worked on in a thread of their own: other peers need not wait.

    frame -> is_heavy? -- no --> the listener's thread handles it
                       -- yes -> HeavyRequests, one after the other; the connection is parked

The listener's thread gets the interpreter back within a few switches of 5 ms each, whatever a
request does. The thread exists only while there is such work. Which requests are heavy is guessed
from what is known before anything is done: the API, the size of the frame, and what a record batch
says of itself.
"""

from __future__ import annotations

from struct import Struct

from embedlog.common import deque
from wire.api_keys import ApiKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.runtime import Runtime
    from wire.net.connection import Connection
    from wire.schemas.produce import ProduceRequest

LIGHT_SIZE_MAX = 8 * 1024
"""Frames up to here are light, unless their API says otherwise."""
LIGHT_PRODUCE_SIZE_MAX = 2 * 1024 * 1024
"""Two batches of the usual size: as many headers as they may have take 30 to 50 ms."""
LIGHT_PARTITIONS_MAX = 200
LIGHT_COMPRESSED_SIZE_MAX = 16 * 1024
"""Compressed records, over all partitions: 16 KiB may become 16 MiB."""
LIGHT_RECORDS_MAX = 10_000
"""Plain records, over all partitions: 10,000 take 2 to 20 ms."""
_COMPRESSED_WEIGHT = 10
"""How many plain ones a compressed record counts as. A frame that brings a plain record has paid
for its bytes; 10,000 records with a header each fit into 280 bytes of gzip, and take 22 ms.
"""
LIGHT_SESSION_MAX = 1_000
LIGHT_TOPICS_MAX = 200

_LIGHT_SIZES = {
    # Whatever their size: one topic may have ten thousand partitions, one answer all groups.
    ApiKey.CREATE_TOPICS: 0,
    ApiKey.CREATE_PARTITIONS: 0,
    ApiKey.DELETE_TOPICS: 0,
    ApiKey.LIST_GROUPS: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 0,
    # A name of a few bytes asks for kilobytes.
    ApiKey.DESCRIBE_CONFIGS: 128,
    ApiKey.DESCRIBE_GROUPS: 128,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 128,
    ApiKey.OFFSET_FETCH: 128,
    ApiKey.DELETE_GROUPS: 128,
    ApiKey.METADATA: 512,
    ApiKey.FETCH: 64 * 1024,
}
_BATCH_HEAD = Struct(">22xB34xi")
"""Of a record batch: the low byte of its attributes, and how many records it says it has."""
_CODEC_MASK = 0x07


def is_heavy(api_key: int, size: int) -> bool:
    """May a request of this API in a frame of `size` bytes take long? Not for Produce."""
    return size > _LIGHT_SIZES.get(api_key, LIGHT_SIZE_MAX)


def is_heavy_produce(request: ProduceRequest) -> bool:
    """May appending take long? What counts is all of the request: it is handled in one go."""
    topics = request.topic_data
    count = weight = compressed_size = 0
    for topic in topics:
        count += len(topic.partition_data)
        if count > LIGHT_PARTITIONS_MAX:
            return True
        for data in topic.partition_data:
            records: Any = data.records
            if records is None or len(records) < _BATCH_HEAD.size:
                continue
            attributes, record_count = _BATCH_HEAD.unpack_from(records)
            # A count that is no count is refused before any record is looked at.
            if attributes & _CODEC_MASK:
                compressed_size += len(records)
                weight += max(0, record_count) * _COMPRESSED_WEIGHT
            else:
                weight += max(0, record_count)
            if weight > LIGHT_RECORDS_MAX or compressed_size > LIGHT_COMPRESSED_SIZE_MAX:
                return True
    return False


class HeavyRequests:
    """The thread for heavy requests of one listener, and what waits for it."""

    __slots__ = ("_failed", "_is_closed", "_queue", "_thread")

    def __init__(self, runtime: Runtime, failed: Callable[[Connection, Exception], None]) -> None:
        """`failed` is told which connection's request ended with a defect."""
        self._queue: deque[tuple[Connection, Callable[[], None]]] = deque()
        self._failed = failed
        self._is_closed = False
        self._thread = runtime.scheduler.duty_thread(self, "embedlog-heavy-requests")

    def add(self, connection: Connection, work: Callable[[], None]) -> None:
        """Have `work` done for `connection`, after what waits already. Not from several threads."""
        self._queue.append((connection, work))
        self._thread.notify()

    def close(self) -> None:
        """Do nothing more; returns when the request that is worked on is done."""
        self._is_closed = True
        self._thread.close()
        self._queue.clear()

    def run_once(self, _now_ms: int) -> int | None:
        """Work until there is nothing left. In the thread of its own."""
        while self._queue and not self._is_closed:
            connection, work = self._queue.popleft()
            if not connection.is_open:
                continue
            try:
                work()
            except Exception as error:  # the top of the thread: a defect costs one connection
                self._failed(connection, error)
        return None
