"""`SharedProducer`: the synchronous producer with the extra calls that asyncio needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embedlog.client.parse_settings import one_of
from embedlog.client.producer.producer import attended
from embedlog.client.producer.sends import ColumnSends
from embedlog.client.settings import PRODUCER
from embedlog.runtime.outer_call import outer

if TYPE_CHECKING:
    from embedlog.client.connect import Target

Columns = tuple[Sequence[Any], Sequence[Any] | None, Sequence[Any] | None]
"""Values, keys, headers."""
_RECORD_OVERHEAD_MAX = 64
"""A record without headers has at most this many bytes besides its key and value."""


class SharedProducer:
    """The producer for the event loop's thread, which must not wait, and for threads that may wait.

    Its checks tell whether a call would wait.
    """

    def __init__(
        self, target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
    ) -> None:
        self.sync, parts = attended(target, config, settings)
        """The synchronous producer."""
        self._parts = parts
        self.send_columns = ColumnSends(parts).send
        self.transactions = parts.transactions
        """The transactional calls; None without a transactional.id."""
        self.in_process = parts.transport.in_process
        self.wall_ms = parts.clock.wall_ms
        self.scheduler = parts.transport.runtime.scheduler
        given = one_of(PRODUCER, "linger.ms", config, settings)
        self.push_delay_ms: int | None = given or 0
        """Milliseconds between a `send` and its `push`; None if the client's own thread pushes."""
        if given is not None and not self.in_process:
            self.push_delay_ms = None
        self._pool = parts.accumulator.pool
        self._topics = parts.destinations.known
        self._batch_size: int = parts.settings["batch.size"]
        self._compresses: bool = parts.settings["compression.type"] != "none"
        self._ample = self._pool.total + 1  # more than the pool can ever have
        if not self._compresses:
            self._ample = max(self._batch_size, parts.limits.size_max)

    @property
    def has_unsettled(self) -> bool:
        return bool(self._parts.accumulator.incomplete)

    def lacks(self, topic: str, partition: int | None = None) -> bool:
        """Whether a look-up of the topic or the partition would wait for metadata."""
        if self.in_process:
            return False
        info = self._parts.metadata.topics.get(topic)
        return info is None or (partition is not None and partition >= len(info.partitions))

    def surely_takes(self, topic: str, partition: int | None) -> bool:
        """A quick check: whether buffer.memory has room for any record and the partition is known.

        If it returns False, the slower `would_wait` decides.
        """
        pool = self._pool
        return (
            pool.available >= self._ample
            and not pool.waiting
            and (topic in self._topics and partition is None or not self.lacks(topic, partition))
        )

    def would_wait(
        self, topic: str, partition: int | None, given: Columns, *, is_bulk: bool
    ) -> bool:
        """Whether `send` (or with `is_bulk`, `send_batch`) might wait with these columns.

        The result is valid for this thread's next call, because other threads only free memory.
        """
        if self.lacks(topic, partition):
            return True
        pool = self._pool
        if pool.waiting:
            return True
        least = self._batch_size
        if self._compresses and not is_bulk:
            # A compressed batch reserves memory for its uncompressed size.
            least = int(least / self._parts.destinations.topic(topic).compression_ratio)
        parts = self._parts
        serializes = parts.serialize_key is not None or parts.serialize_value is not None
        size = None if serializes else _size_bound(*given)
        if size is None:
            size = pool.total if is_bulk else parts.limits.size_max
        return pool.available < min(max(least, size), pool.total)

    @outer
    def push(self) -> None:
        """Send all batches now, even if linger.ms is not over. This call never waits."""
        if self.in_process:
            self._parts.accumulator.close_all()
        else:
            # The batches stay open: records may join a batch until the connection takes it.
            self._parts.accumulator.want_all()
        self._parts.passes.run()


def _size_bound(
    values: Sequence[Any], keys: Sequence[Any] | None, headers: Sequence[Any] | None
) -> int | None:
    """Return an upper bound of the records' size. None with headers, or for values without len."""
    try:
        sizes = sum(map(len, values)) + sum(map(len, keys or ()))
    except TypeError:
        return None
    return None if headers else sizes + len(values) * _RECORD_OVERHEAD_MAX
