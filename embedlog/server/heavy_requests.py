"""Long requests in a thread of their own, so that other clients need not wait.

    frame -> is_heavy? -- no --> the listener's thread handles it
                       -- yes -> the thread of HeavyRequests handles one after the other, while
                                 their connections are parked

While a heavy request runs, the listener's thread gets the interpreter back within a few thread
switches of 5 ms each. The thread for heavy requests exists only while it has work. `is_heavy` is a
guess from facts known in advance: the API, the size of the frame, and the header of a record batch.
"""

from __future__ import annotations

from struct import Struct

from embedlog.common import deque
from embedlog.runtime.threads import NoThread
from wire.api_keys import ApiKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.runtime import Runtime
    from wire.net.connection import Connection
    from wire.schemas.produce import ProduceRequest

LIGHT_SIZE_MAX = 8 * 1024
"""A frame larger than this is heavy, unless `_LIGHT_SIZES` has another limit for its API."""
LIGHT_PRODUCE_SIZE_MAX = 2 * 1024 * 1024
"""A Produce is heavy if its frame is larger than this. Two batches of the usual size fit: the
record headers that fit into them take 30 to 50 ms."""
LIGHT_PARTITIONS_MAX = 200
"""A Produce is heavy if it names more partitions than this."""
LIGHT_COMPRESSED_SIZE_MAX = 16 * 1024
"""A Produce is heavy if it has more compressed data than this: 16 KiB may become 16 MiB."""
LIGHT_RECORDS_MAX = 10_000
"""A Produce is heavy if it has more records than this: 10,000 plain records take 2 to 20 ms."""
_COMPRESSED_WEIGHT = 10
"""A compressed record counts as this many plain records. The size of the frame already limits plain
records, but 280 bytes of gzip can hold 10,000 records with one header each, which take 22 ms."""
LIGHT_SESSION_MAX = 1_000
"""A Fetch is heavy if it continues a session of more partitions than this."""
LIGHT_TOPICS_MAX = 200
"""A Metadata request for all topics is heavy if the cluster has more topics than this."""

_LIGHT_SIZES = {
    # Heavy at any size: one topic may have ten thousand partitions, one answer lists all groups.
    ApiKey.CREATE_TOPICS: 0,
    ApiKey.CREATE_PARTITIONS: 0,
    ApiKey.DELETE_TOPICS: 0,
    ApiKey.LIST_GROUPS: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 0,
    # A request with a name of a few bytes gets an answer of kilobytes.
    ApiKey.DESCRIBE_CONFIGS: 128,
    ApiKey.DESCRIBE_GROUPS: 128,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 128,
    ApiKey.OFFSET_FETCH: 128,
    ApiKey.DELETE_GROUPS: 128,
    ApiKey.METADATA: 512,
    ApiKey.FETCH: 64 * 1024,
}
_BATCH_HEAD = Struct(">22xB34xi")
"""Reads the low byte of the attributes and the number of records of a batch."""
_CODEC_MASK = 0x07


def is_heavy(api_key: int, size: int) -> bool:
    """Return whether a request in a frame of `size` bytes may take long. Not for Produce."""
    return size > _LIGHT_SIZES.get(api_key, LIGHT_SIZE_MAX)


def is_heavy_produce(request: ProduceRequest) -> bool:
    """Return whether the appends to all partitions, which one call handles, may take long."""
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
            # Count a negative number of records as 0: the broker refuses such a batch unread.
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
        """`failed` is called with the connection and the exception if a request raises one."""
        self._queue: deque[tuple[Connection, Callable[[], None]]] = deque()
        self._failed = failed
        self._is_closed = False
        self._thread = runtime.scheduler.duty_thread(self, "embedlog-heavy-requests")

    def add(self, connection: Connection, work: Callable[[], None]) -> None:
        """Queue `work` for `connection`. Only one thread may call this."""
        self._queue.append((connection, work))
        try:
            self._thread.notify()
        except NoThread:
            self.run_once(0)  # in the listener's thread: slow for the others, but answered

    def close(self) -> None:
        """Drop the waiting requests; return when the running request is done."""
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
            except Exception as error:  # the top of the thread: a bug costs one connection
                self._failed(connection, error)
        return None
