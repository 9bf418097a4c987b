"""Dead letters (KIP-1191): copies of records that a share group has given up.

    check the topic -> create it if it is missing -> produce, a batch at a time
         ^                                              |
         +------ again after a pause, if it may help ---+

A letter is one record: its headers say where the record was and why it was given up. Letters that
cannot be written are lost with a warning; the records are archived all the same.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.config import topic_config
from embedlog.logger import Logger
from embedlog.runtime.pending import Pending, completed
from embedlog.sharing.letter_records import LetterRecords
from wire.error_codes import ErrorCode
from wire.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.controller.metadata import TopicImage
    from embedlog.coordinator.share.state_client import StateBatch
    from embedlog.replication.partition import Partition
    from embedlog.sharing.settings import ShareSettings
    from embedlog.sharing.sharing_context import SharingContext
    from wire.schema import Request

    Ask = Callable[[int, Request[Any]], Pending[Any]]
    """Sends a request to a broker."""

ATTEMPT_COUNT_MAX = 5
FIRST_PAUSE_MS = 1000
PAUSE_MS_MAX = 30_000
TIMEOUT_MS = 30_000

_ENABLE = "errors.deadletterqueue.group.enable"
_RETRIED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
)

_log = Logger("sharing")


class DeadLetters:
    """Writes the dead letters of all groups of one broker."""

    def __init__(self, context: SharingContext, ask: Ask) -> None:
        self.context = context
        self.ask = ask

    def bury(self, group_id: str, partition: Partition, rows: list[StateBatch]) -> Pending[None]:
        """Write a letter for each offset of `rows`; the answer comes in any case."""
        settings = self.context.settings(group_id)
        records = LetterRecords(
            group_id,
            partition,
            rows,
            delivery_limit=settings.delivery_limit,
            copies=settings.copies_records,
        )
        burial = _Burial(self, settings, partition.index, records)
        burial.go_on()
        return burial.done

    def topic_of(self, settings: ShareSettings) -> TopicImage | None:
        """Return the dead letter topic; None if it has to be created.

        Raises:
            InvalidConfig: the topic must not be used.
        """
        image, config = self.context.metadata(), self.context.config
        name = settings.dead_letter_topic
        if not name:
            raise errors.InvalidConfig("the group has no dead letter topic")
        if name.startswith("__"):
            raise errors.InvalidConfig(f"{name!r} begins with '__'")
        topic = image.topics_by_name.get(name)
        if topic is not None:
            texts = image.topic_configs.get(name, {})
            if not topic_config.effective(_ENABLE, texts, config):
                raise errors.InvalidConfig(f"topic {name!r} does not have {_ENABLE}")
        elif not config.errors_deadletterqueue_auto_create_topics_enable:
            raise errors.InvalidConfig(f"topic {name!r} does not exist, and must not be created")
        prefix = config.errors_deadletterqueue_topic_name_prefix
        if prefix and not name.startswith(prefix):
            raise errors.InvalidConfig(f"{name!r} does not begin with {prefix!r}")
        return topic

    def create(self, name: str) -> Pending[int]:
        """Create the topic; the answer is an error code."""
        configs = [
            CreatableTopicConfig(name=_ENABLE, value="true"),
            CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
        ]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, configs=configs)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        pending = self.ask(self.context.replica_manager.node_id, request)
        return _code_of(pending, lambda answer: int(answer.topics[0].error_code))

    def produce(self, topic: TopicImage, index: int, batch: bytes) -> Pending[int]:
        """Append a batch to a partition of the topic; the answer is an error code."""
        leader = topic.partitions[index].leader
        if leader < 0:
            return completed(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        data = PartitionProduceData(index=index, records=batch)
        where = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[where])

        def code(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        return _code_of(self.ask(leader, request), code)


class _Burial:
    """The letters of some records, on their way. Steps follow each other, one at a time."""

    def __init__(
        self,
        letters: DeadLetters,
        settings: ShareSettings,
        index: int,
        records: LetterRecords,
    ) -> None:
        """`index` is the number of the partition that the records are from."""
        self.done: Pending[None] = Pending()
        self._letters = letters
        self._settings = settings
        self._index = index
        self._records = records
        self._batch: bytes | None = None
        self._attempt_count = 0
        self._pause_ms = FIRST_PAUSE_MS

    def go_on(self) -> None:
        """Send requests until an answer has to be waited for, or the burial is over."""
        while (pending := self._next_request()) is not None:
            if not pending.done():
                pending.add_callback(self._answered)
                return
            if not self._take(pending.result()):
                return

    def _answered(self, done: Pending[int]) -> None:
        if self._take(done.result()):
            self.go_on()

    def _next_request(self) -> Pending[int] | None:
        """Send the next request; its answer is an error code. None if the burial is over."""
        letters, name = self._letters, self._settings.dead_letter_topic
        try:
            topic = letters.topic_of(self._settings)
            if topic is None:
                return letters.create(name)
            if self._batch is None:
                self._batch = self._records.next_batch(
                    letters.context.wall_ms(), size_max=self._size_max(name)
                )
        except errors.EmbedlogError as error:
            self._give_up(str(error))
            return None
        if self._batch is None:
            self.done.complete(None)
            return None
        return letters.produce(topic, self._index % len(topic.partitions), self._batch)

    def _size_max(self, name: str) -> int:
        context = self._letters.context
        texts = context.metadata().topic_configs.get(name, {})
        size = topic_config.effective("max.message.bytes", texts, context.config)
        assert isinstance(size, int), size
        return size

    def _take(self, code: int) -> bool:
        """Take the answer to the last request; return whether to go on at once."""
        if code == ErrorCode.NONE and self._batch is not None:
            self._batch = None
            self._attempt_count = 0
            self._pause_ms = FIRST_PAUSE_MS
            return True
        if code in (ErrorCode.NONE, *_RETRIED):  # a new topic is known a moment later
            self._try_again(errors.error_name(code))
        else:
            self._give_up(errors.error_name(code))
        return False

    def _try_again(self, reason: str) -> None:
        self._attempt_count += 1
        if self._attempt_count >= ATTEMPT_COUNT_MAX:
            self._give_up(reason)
            return
        pause = self._letters.context.pause(self._pause_ms)
        self._pause_ms = min(PAUSE_MS_MAX, 2 * self._pause_ms)
        pause.add_callback(lambda _: self.go_on())

    def _give_up(self, reason: str) -> None:
        _log.warning("records got no dead letter in %r: %s", self._records.source, reason)
        self.done.complete(None)


def _code_of(pending: Pending[Any], code: Callable[[Any], int]) -> Pending[int]:
    """Return a pending of the error code in an answer, or of the error that came instead."""
    found: Pending[int] = Pending()

    def answered(done: Pending[Any]) -> None:
        error = done.error()
        if error is None:
            found.complete(code(done.result()))
        elif isinstance(error, errors.KafkaError):
            found.complete(error.code)
        else:
            found.complete(int(ErrorCode.NETWORK_EXCEPTION))

    pending.add_callback(answered)
    return found
