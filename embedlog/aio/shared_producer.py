"""The synchronous producer, and what the one for asyncio needs of it beyond its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.client.parse_settings import one_of
from embedlog.client.producer.producer import Producer
from embedlog.client.producer.settings import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.client.connect import Target
    from embedlog.runtime import Scheduler

    Columns = tuple[Sequence[Any], Sequence[Any] | None, Sequence[Any] | None]
    """Values, keys, headers."""

_RECORD_OVERHEAD_MAX = 64
"""More than surrounds a key and a value without headers."""


class SharedProducer(Producer):
    """Used by the event loop's thread, which must not wait, and by threads that wait for it."""

    _is_attended = True

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        super().__init__(target, config, **settings)
        self.in_process = self._transport.in_process
        self.wall_ms = self._clock.wall_ms
        self.send_columns = self._send_columns
        given = one_of(PRODUCER, "linger.ms", config, settings)
        self.push_delay_ms: int | None = given or 0
        """When after a record to push; None when the client's own thread sees to it."""
        if given is not None and not self.in_process:
            self.push_delay_ms = None
        self._pool = self._accumulator.pool
        self._batch_size: int = self._settings["batch.size"]
        self._compresses: bool = self._settings["compression.type"] != "none"
        self._serializes = self._serialize_key is not None or self._serialize_value is not None
        self._record_size_max = self._limits.size_max
        self._ample = self._pool.total + 1  # never so much
        if not self._compresses:
            self._ample = max(self._batch_size, self._record_size_max)

    @property
    def scheduler(self) -> Scheduler:
        """Starts threads."""
        return self._transport.runtime.scheduler

    @property
    def has_unsettled(self) -> bool:
        """Is there a batch without an outcome?"""
        return bool(self._accumulator.incomplete)

    def lacks(self, topic: str, partition: int | None = None) -> bool:
        """Would a look-up of the topic, or of that partition, wait for metadata?"""
        if self.in_process:
            return False
        info = self._metadata.topics.get(topic)
        return info is None or (partition is not None and partition >= len(info.partitions))

    def surely_takes(self, topic: str, partition: int | None) -> bool:
        """Is there room for any one record, and is its place known? A quick look."""
        pool = self._pool
        return (
            pool.available >= self._ample
            and not pool.waiting
            and (topic in self._topics and partition is None or not self.lacks(topic, partition))
        )

    def would_wait(
        self, topic: str, partition: int | None, given: Columns, *, is_bulk: bool
    ) -> bool:
        """Might `send` (or `send_batch`: `is_bulk`) of these values, keys and headers wait?

        What it finds holds for this thread's next call: others only give room back.
        """
        if self.lacks(topic, partition):
            return True
        pool = self._pool
        if pool.waiting:
            return True
        least = self._batch_size
        if self._compresses and not is_bulk:
            # A batch reserves what it holds before it is compressed.
            least = int(least / self._destinations.topic(topic).compression_ratio)
        size = None if self._serializes else _size_bound(*given)
        if size is None:
            size = pool.total if is_bulk else self._record_size_max
        return pool.available < min(max(least, size), pool.total)

    def push(self) -> None:
        """Send everything that waits for company; never waits itself."""
        if self.in_process:
            self._accumulator.close_all()
        else:
            # Records may still join until the connection takes the batch.
            self._accumulator.want_all()
        self._driver.run()


def _size_bound(
    values: Sequence[Any], keys: Sequence[Any] | None, headers: Sequence[Any] | None
) -> int | None:
    """More than such records take; None when that is not simple."""
    try:
        sizes = sum(map(len, values)) + sum(map(len, keys or ()))
    except TypeError:
        return None
    return None if headers else sizes + len(values) * _RECORD_OVERHEAD_MAX
