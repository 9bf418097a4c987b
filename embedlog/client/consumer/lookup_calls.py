"""A consumer's questions about topics and their offsets, assigned or not."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.offset_lookup import OffsetLookup
from embedlog.client.errors import because
from embedlog.errors import TimedOut
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from embedlog.client.consumer.driver import ConsumerDriver
    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.common import TopicPartition


class LookupCalls:
    """Looking around."""

    __slots__ = ("_driver", "_guard", "_metadata", "_parts")

    def __init__(self, parts: ConsumerParts, driver: ConsumerDriver) -> None:
        self._driver = driver
        self._guard = driver.guard
        self._parts = parts
        self._metadata = parts.metadata

    def edge_offsets(
        self, partitions: Iterable[Any], timestamp: int, timeout_ms: int | None, call: str
    ) -> dict[TopicPartition, int]:
        """The offset that ListOffsets finds for this timestamp in each partition."""
        keys = arguments.partitions(partitions, call)
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            found = self._look_up(dict.fromkeys(keys, timestamp), timeout_ms)
        return {key: 0 if offset is None else offset.offset for key, offset in found.items()}

    def offsets_for_times(
        self,
        timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """See `Consumer.offsets_for_times`."""
        call = "offsets_for_times"
        given = arguments.by_partition(timestamps, call, "timestamps", "timestamp in ms")
        asked = {
            key: arguments.timestamp_ms(stamp, call, f"timestamps: {key}")
            for key, stamp in given.items()
        }
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, call)
        with self._guard:
            return self._look_up(asked, timeout_ms)

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """See `Consumer.partitions_for`."""
        arguments.topic_name(topic, "partitions_for")
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "partitions_for")
        with self._guard:
            metadata = self._metadata
            metadata.want(topic)
            try:
                if not self._driver.drive(self._asked_anew(topic), timeout_ms):
                    text = f"the cluster did not describe topic {topic!r} in time"
                    raise TimedOut(f"{text}{because(metadata.last_error)}")
            finally:
                if topic not in metadata.topics and not self._parts.subscription.uses(topic):
                    metadata.wanted.forget([topic])
            error = metadata.topic_error(topic)
            if error is not None:
                raise error
            info = metadata.topics.get(topic)
            return [] if info is None else list(info.partitions)

    def list_topics(self, timeout_ms: int | None = None) -> dict[str, TopicInfo]:
        """See `Consumer.list_topics`."""
        timeout_ms = arguments.optional_timeout_ms(timeout_ms, "list_topics")
        with self._guard:
            metadata = self._metadata
            before = metadata.full_version
            metadata.want_all()
            if not self._driver.drive(lambda: metadata.full_version > before, timeout_ms):
                text = "the cluster did not describe its topics in time"
                raise TimedOut(f"{text}{because(metadata.last_error)}")
            return dict(metadata.topics)

    def _look_up(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        parts = self._parts
        lookup = OffsetLookup(
            parts.transport, parts.metadata, parts.settings, timestamps, parts.arrived
        )
        if not self._driver.drive(lambda: lookup.is_done, timeout_ms, lookup.advance):
            missing = ", ".join(str(key) for key in timestamps if key not in lookup.found)
            raise TimedOut(f"no offsets in time for {missing}: do these partitions exist?")
        for error in lookup.failed.values():
            raise error
        return lookup.found

    def _asked_anew(self, topic: str) -> Callable[[], bool]:
        """Says whether the topic is known, or a request that begins here was answered without."""
        metadata = self._metadata
        earlier = metadata.pending

        def ask() -> None:
            metadata.unlearn([topic])
            metadata.want_now()
            metadata.request_update()

        def is_described() -> bool:
            nonlocal earlier
            if topic in metadata.topics:
                return True
            if earlier is not None:
                if metadata.pending is not earlier:
                    earlier = None  # what it said may be old news
                    ask()
                return False
            error = metadata.errors.get(topic)
            # Without a leader it is being made.
            return error is not None and error.code != ErrorCode.LEADER_NOT_AVAILABLE

        if topic not in metadata.topics and earlier is None:
            ask()
        return is_described
