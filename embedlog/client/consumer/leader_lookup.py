"""`LeaderLookup`: a question about partitions that only their leaders can answer.

A look-up is a small state machine: `advance` asks the leaders and takes answers. After an error
that a retry or newer metadata may cure, it refreshes the metadata and asks again.

Each partition is answered by itself: `take_answered` returns a partition as soon as its leader has
answered, even while other partitions have no leader.
"""

from __future__ import annotations

from abc import abstractmethod

from embedlog import errors
from embedlog.client.lacks import lack_of
from embedlog.client.metadata import STALE_METADATA, as_kafka_error
from embedlog.errors import error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.metadata import Metadata, PartitionInfo
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending


class LeaderLookup:
    """One question about several partitions. A subclass sends the requests."""

    def __init__(
        self, metadata: Metadata, backoff_ms: int, wanted: Mapping[TopicPartition, int]
    ) -> None:
        """`wanted` has the question's argument for each partition: a timestamp or an epoch."""
        self._metadata = metadata
        self._backoff_ms = backoff_ms
        self._left = dict(wanted)
        self._asked: dict[TopicPartition, int] = {}
        self._pending: list[tuple[list[TopicPartition], Pending[Any]]] = []
        self._not_before_ms = 0
        self._answered: list[TopicPartition] = []
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}
        """By partition, the leader of the last request, as (node id, leader epoch)."""
        self.failed: dict[TopicPartition, KafkaError] = {}
        self._refusals: dict[TopicPartition, KafkaError] = {}

    @property
    def is_done(self) -> bool:
        return not self._left and not self._asked

    def take_answered(self) -> list[TopicPartition]:
        """Return the partitions that got their answer, or failed, since the last call."""
        answered, self._answered = self._answered, []
        return answered

    def forget(self, key: TopicPartition) -> None:
        """Ask no more about a partition; ignore its answer if the request is under way."""
        self._left.pop(key, None)
        self._asked.pop(key, None)

    @property
    def last_refusal(self) -> KafkaError | None:
        """The reason why a partition has no answer yet; None if its leader was not asked."""
        for key in (*self._left, *self._asked):
            reason = self._refusals.get(key) or lack_of(self._metadata, *key)
            if reason is not None:
                return reason
        return None

    def advance(self, now_ms: int) -> int | None:
        """Send requests and take answers without waiting; return milliseconds to the next retry.

        Returns None if only an answer makes another step useful.
        """
        self._take_arrived(now_ms)
        if self._left and now_ms >= self._not_before_ms:
            self._ask()
            self._take_arrived(now_ms)  # in process the answers arrive at once
        if not self._left:
            return None
        # Without a leader: newer metadata may name it.
        return self._not_before_ms - now_ms if now_ms < self._not_before_ms else self._backoff_ms

    @abstractmethod
    def _ask(self) -> None:
        """Ask the known leaders about partitions; call `_asking` for each."""

    @abstractmethod
    def _answers_of(self, response: Any) -> dict[tuple[str, int], Any]:
        """Return a response's answers by (topic, partition); each has an `error_code`."""

    @abstractmethod
    def _found(self, key: TopicPartition, answer: Any) -> None:
        """Store an answer that has no error."""

    def _asking(self, key: TopicPartition, leader: PartitionInfo) -> None:
        """Note that `leader` is being asked about a partition."""
        self._asked[key] = self._left.pop(key)
        self.leaders[key] = leader.leader, leader.leader_epoch

    def _fail(self, key: TopicPartition, error: KafkaError) -> None:
        self._left.pop(key, None)
        self.failed[key] = error
        self._answered.append(key)

    def _take_arrived(self, now_ms: int) -> None:
        pending, self._pending = self._pending, []
        for asked, answer in pending:
            if answer.done():
                self._take(asked, answer, now_ms)
            else:
                self._pending.append((asked, answer))

    def _take(self, asked: list[TopicPartition], pending: Pending[Any], now_ms: int) -> None:
        asked = [key for key in asked if key in self._asked]
        error = pending.error()
        if error is not None:
            for key in asked:
                self._refused(key, as_kafka_error(error), now_ms)
            return
        answers = self._answers_of(pending.result())
        for key in asked:
            answer = answers.get((key.topic, key.partition))
            if answer is None:
                self._refused(key, errors.UnknownServerError("the response lacks it"), now_ms)
            elif answer.error_code:
                self._refused(key, error_for(answer.error_code, str(key)), now_ms)
            else:
                del self._asked[key]
                self._answered.append(key)
                self._found(key, answer)

    def _refused(self, key: TopicPartition, error: KafkaError, now_ms: int) -> None:
        wanted = self._asked.pop(key)
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
            cause = self._metadata.disk_error(*key)
            if cause is not None:
                self._fail(key, errors.KafkaStorageError(f"{key} cannot be read: {cause}"))
                return
        if not error.retriable and error.code not in STALE_METADATA:
            self._fail(key, error)
            return
        self._refusals[key] = error
        self._left[key] = wanted
        self._not_before_ms = now_ms + self._backoff_ms
        self._metadata.request_update()
