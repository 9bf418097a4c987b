"""Acknowledgements on their way to a leader, the commits that wait for them, and their outcomes."""

from __future__ import annotations

from embedlog import errors
from embedlog.client.share.acknowledge_type import GAP, AcknowledgeType
from embedlog.client.user_code import attempt
from embedlog.common import TopicPartition, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.client.share.in_flight import Delivery
    from embedlog.errors import KafkaError

    Callback = Callable[[dict[TopicPartition, set[int]], KafkaError | None], object]


class ShareCommit:
    """A call that waits for the outcomes of acknowledgements."""

    __slots__ = ("_left", "results")

    def __init__(self) -> None:
        self.results: dict[TopicPartition, KafkaError | None] = {}
        self._left: dict[Acknowledgements, TopicPartition] = {}

    @property
    def is_done(self) -> bool:
        return not self._left

    def wait_for(self, one: Acknowledgements) -> None:
        self._left[one] = one.delivery.key

    def finished(self, one: Acknowledgements, error: KafkaError | None) -> None:
        key = self._left.pop(one, None)
        if key is not None:
            self.results[key] = self.results.get(key) or error

    def give_up(self) -> None:
        """Stop waiting: the partitions without an outcome have timed out."""
        for one in list(self._left):
            cause = one.last_refusal
            text = "the leader did not answer the acknowledgements in time"
            if cause is not None:
                text += f"; the last error was: {type(cause).__name__}: {cause}"
            self.finished(one, errors.RequestTimedOut(text))


class Acknowledgements:
    """The acknowledgements of one partition that have one outcome."""

    __slots__ = ("commit", "deadline_ms", "delivery", "last_refusal", "types")

    def __init__(self, delivery: Delivery, types: Mapping[int, int], deadline_ms: int) -> None:
        self.delivery = delivery
        self.types = types
        """The type of each offset."""
        self.deadline_ms = deadline_ms
        """They are sent again after a passing error until this time."""
        self.commit: ShareCommit | None = None
        self.last_refusal: KafkaError | None = None

    @property
    def place(self) -> tuple[bytes, int]:
        return self.delivery.topic_id, self.delivery.key[1]

    @property
    def renews(self) -> bool:
        return AcknowledgeType.RENEW in self.types.values()


class Outcomes:
    """Collects the outcomes of acknowledgements; `settle` tells the user's callback."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts
        self._to_tell: deque[tuple[TopicPartition, set[int], KafkaError | None]] = deque()
        self.callback: Callback | None = None

    def finish(self, one: Acknowledgements, error: KafkaError | None) -> None:
        """Note an outcome: None if the leader has taken the acknowledgements."""
        name = "acknowledgements-send-total" if error is None else "acknowledgements-error-total"
        self._counts[name] += len(one.types)
        one.delivery.settle(one.types, renewed=error is None)
        if one.commit is not None:
            one.commit.finished(one, error)
        offsets = {offset for offset, kind in one.types.items() if kind != GAP}
        if offsets and self.callback is not None:
            self._to_tell.append((one.delivery.key, offsets, error))

    def settle(self) -> None:
        """Call the callback for each outcome. Requires: the user's thread.

        Raises:
            Exception: the callback raised it.
        """
        while self._to_tell:
            key, offsets, error = self._to_tell.popleft()
            if self.callback is not None:
                about = f"for the acknowledgements of {key}"
                raised = attempt(self.callback, {key: offsets}, error, about=about)
                if raised is not None:
                    raise raised
