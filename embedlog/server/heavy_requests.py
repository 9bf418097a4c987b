"""Long requests in a thread of their own, so that other clients need not wait.

    frame -> is_heavy? -- no --> the listener's thread handles it
                       -- yes -> HeavyRequests, one after the other; the connection is parked

The listener's thread gets the interpreter back within a few switches of 5 ms each, whatever a
request does. The thread exists only while there is such work. A request is heavy by a guess from
facts known in advance: the API, the size of the frame, and the header of a record batch.
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
"""Smaller frames are light, unless their API has its own limit."""
LIGHT_PRODUCE_SIZE_MAX = 2 * 1024 * 1024
"""Two batches of the usual size: the headers that fit into them take 30 to 50 ms."""
LIGHT_PARTITIONS_MAX = 200
LIGHT_COMPRESSED_SIZE_MAX = 16 * 1024
"""Size of compressed records over all partitions: 16 KiB may become 16 MiB."""
LIGHT_RECORDS_MAX = 10_000
"""Number of plain records over all partitions: 10,000 take 2 to 20 ms."""
_COMPRESSED_WEIGHT = 10
"""The number of plain records that a compressed record counts as. Plain records pay for their bytes
in the frame; 10,000 records with a header each fit into 280 bytes of gzip, and take 22 ms."""
LIGHT_SESSION_MAX = 1_000
LIGHT_TOPICS_MAX = 200

_LIGHT_SIZES = {
    # Heavy at any size: one topic may have ten thousand partitions, one answer all groups.
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
"""In a record batch: the low byte of the attributes, and the number of records."""
_CODEC_MASK = 0x07


def is_heavy(api_key: int, size: int) -> bool:
    """May a request of this API in a frame of `size` bytes take long? Not for Produce."""
    return size > _LIGHT_SIZES.get(api_key, LIGHT_SIZE_MAX)


def is_heavy_produce(request: ProduceRequest) -> bool:
    """May the append take long? All partitions count, because one call handles them."""
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
            # A negative count is refused before any record is read.
            if attributes & _CODEC_MASK:
                compressed_size += len(records)
                weight += max(0, record_count) * _COMPRESSED_WEIGHT
            else:
                weight += max(0, record_count)
            if weight > LIGHT_RECORDS_MAX or compressed_size > LIGHT_COMPRESSED_SIZE_MAX:
                return True
    return False


class HeavyRequests:
    """The thread for heavy requests of one listener, and its queue."""

    def __init__(self, runtime: Runtime, failed: Callable[[Connection, Exception], None]) -> None:
        """`failed` gets the connection and the exception of a request that ended with a defect."""
        self._queue: deque[tuple[Connection, Callable[[], None]]] = deque()
        self._failed = failed
        self._is_closed = False
        self._thread = runtime.scheduler.duty_thread(self, "embedlog-heavy-requests")

    def add(self, connection: Connection, work: Callable[[], None]) -> None:
        """Queue `work` for `connection`. Only one thread may call this."""
        self._queue.append((connection, work))
        self._thread.notify()

    def close(self) -> None:
        """Stop working; return when the present request is done."""
        self._is_closed = True
        self._thread.close()
        self._queue.clear()

    def run_once(self, _now_ms: int) -> int | None:
        while self._queue and not self._is_closed:
            connection, work = self._queue.popleft()
            if not connection.is_open:
                continue
            try:
                work()
            except Exception as error:  # the top of the thread: a defect costs one connection
                self._failed(connection, error)
        return None
