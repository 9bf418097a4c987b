"""`Destinations`: from a topic's name, a partition or a key to the queue that a record joins."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.producer.partitioners import ChosenPartitioner
from embedlog.errors import ClosedError, TimedOut, again, error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from embedlog.client.drivers.driver import Driver
    from embedlog.client.metadata import Metadata, TopicInfo
    from embedlog.client.producer.columns import Columns
    from embedlog.client.producer.queues import PartitionQueue, ProducerQueues, TopicQueues
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class Destinations:
    """The topics that one producer has sent to. Waits for the metadata of an unknown topic."""

    def __init__(
        self,
        metadata: Metadata,
        queues: ProducerQueues,
        driver: Driver,
        settings: Settings,
        transport: Transport,
        *,
        awaited: Callable[[], set[str]],
    ) -> None:
        """`awaited()` returns the topics of records without an outcome."""
        self._metadata = metadata
        self._queues = queues
        self._awaited = awaited
        self._driver = driver
        self._transport = transport
        self._clock = transport.runtime.clock
        self._is_in_process = transport.in_process
        self._max_block_ms: int = settings["max.block.ms"]
        chosen = settings["partitioner.class"]
        self._chosen = None if chosen is None else ChosenPartitioner(chosen, settings)
        self._partitioner = None if self._chosen is None else self._chosen.choose
        self._ignores_keys: bool = settings["partitioner.ignore.keys"]
        self._is_closed = False
        self.known: dict[str, TopicQueues] = {}
        """The results of `topic`; emptied by `metadata.on_news`."""
        self.waited_ns = 0
        metadata.on_news = self._renew
        metadata.wanted.in_use = self._topics_in_use

    def close(self) -> None:
        """Let every look-up raise ClosedError, even a waiting look-up."""
        self._is_closed = True
        self.known.clear()
        if self._chosen is not None:
            self._chosen.close()

    def _renew(self) -> None:
        """Metadata was renewed: forget the known topics; note that all of them were in use."""
        for name in list(self.known):
            self._metadata.want(name)
        self.known.clear()

    def _topics_in_use(self) -> set[str]:
        """Return the topics with records since the last metadata, or without an outcome yet."""
        return self._awaited() | self.known.keys()

    def is_sticky(self, partition: int | None, key: bytes | None) -> bool:
        """Return whether a record with this partition and key may join any queue of its topic."""
        return (
            partition is None and (key is None or self._ignores_keys) and self._partitioner is None
        )

    def topic(self, name: str) -> TopicQueues:
        """Return the queues of a topic; wait for metadata if it is unknown.

        Raises:
            ClosedError: the producer is closed.
            TimedOut: the topic is still unknown after max.block.ms.
            KafkaError: the cluster refuses to describe the topic.
        """
        queues = self.known.get(name)
        if queues is None:
            if self._is_closed:
                raise ClosedError("the producer is closed")
            info = self._metadata.topics.get(name)
            if info is None:
                info = self._await_topic(name)
            queues = self.known[name] = self._queues.queues(info)
        return queues

    def queue(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        given: tuple[Any, Any],
    ) -> PartitionQueue:
        """Return the queue of the named partition, or of the partition that the record's key
        decides.

        `given` are key and value before they were serialized.
        """
        queues = self.topic(topic)
        if partition is not None:
            return self._named(queues, partition)
        if self._partitioner is not None:
            return self._named(queues, self._partitioner(queues.info, key, value, *given))
        if key is not None and not self._ignores_keys:
            return queues.queue_of(key)
        return self._queues.sticky_queue(queues)

    def divide(
        self,
        topic: str,
        columns: Columns,
        partition: int | None,
        given: tuple[Sequence[Any] | None, Sequence[Any]],
    ) -> list[tuple[PartitionQueue, Columns]]:
        """Return the records of each partition, with its queue.

        `given` are the keys and the values before they were serialized.
        """
        queues = self.topic(topic)
        if partition is not None:
            return [(self._named(queues, partition), columns)]
        if self._partitioner is not None:
            info = queues.info
            choose = self._partitioner
            keys, values = given
            # Not serialized; `next` gives the right pair, because `by_partition` keeps the order.
            before = zip([None] * len(values) if keys is None else keys, values, strict=True)
            parts = columns.by_partition(
                lambda key, value: int(choose(info, key, value, *next(before)))
            )
            return [(self._named(queues, number), part) for number, part in parts.items()]
        sticky = self._queues.sticky_queue(queues)
        if columns.keys is None or self._ignores_keys:
            return [(sticky, columns)]
        queue_of = queues.queue_of
        parts = columns.by_partition(
            lambda key, _: (sticky if key is None else queue_of(bytes(key))).partition
        )
        return [(queues.queue(number), part) for number, part in parts.items()]

    def _await_topic(self, name: str) -> TopicInfo:
        metadata = self._metadata
        metadata.want(name)
        answer_count = metadata.answer_count

        def is_refused() -> bool:
            return (
                name in metadata.errors
                and metadata.answer_count > answer_count
                and not self._transport.makes_topics
            )

        def is_settled() -> bool:
            known = name in metadata.topics or metadata.topic_error(name) is not None
            return known or metadata.failure is not None or is_refused()

        self._wait(is_settled)
        info = metadata.topics.get(name)
        if info is not None:
            return info
        error = metadata.topic_error(name) or metadata.failure
        if error is not None:
            raise again(error)
        if is_refused():
            metadata.wanted.forget([name])
            code = metadata.errors[name].code
            text = "and sending to it does not create it (auto.create.topics.enable=false)"
            raise error_for(code, f"there is no topic {name!r}, {text}")
        last = metadata.last_error or metadata.errors.get(name)
        reason = f"no answer from {self._transport!r}" if last is None else str(last)
        raise TimedOut(
            f"topic {name!r} is not in the cluster's metadata after max.block.ms="
            f"{self._max_block_ms}: {reason}"
        )

    def _named(self, queues: TopicQueues, partition: int) -> PartitionQueue:
        if partition < 0:
            raise ValueError(f"partition={partition}: must not be negative")
        if partition >= len(queues.info.partitions):
            queues = self._await_partition(queues.name, partition)
        return queues.queue(partition)

    def _await_partition(self, name: str, partition: int) -> TopicQueues:
        """Wait until a topic has `partition`, which somebody may be adding; return its queues.

        In process one answer settles it. Over a network, ask until max.block.ms is over.
        """
        metadata = self._metadata
        answers = [metadata.answer_count]

        def is_there() -> bool:
            info = metadata.topics.get(name)
            if info is not None and partition < len(info.partitions):
                return True
            if metadata.answer_count > answers[0]:
                answers[0] = metadata.answer_count
                if self._is_in_process:
                    return True
                metadata.request_update()
                self._driver.run()
            return False

        metadata.request_update()
        self._wait(is_there)
        queues = self.topic(name)
        count = len(queues.info.partitions)
        if partition < count:
            return queues
        text = f"topic {name!r} has no partition {partition}, only {count}"
        if self._is_in_process:
            raise errors.UnknownTopicOrPartition(text)
        raise TimedOut(f"{text}, also after max.block.ms={self._max_block_ms}")

    def _wait(self, is_done: Callable[[], bool]) -> None:
        began_us = self._clock.monotonic_us()
        self._driver.wait(lambda: self._is_closed or is_done(), self._max_block_ms)
        self.waited_ns += (self._clock.monotonic_us() - began_us) * 1000
        if self._is_closed:
            raise ClosedError("the producer was closed while a record waited for metadata")
