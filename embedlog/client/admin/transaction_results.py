"""What the admin client says about transactions."""

from __future__ import annotations

from embedlog.client.admin.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition


class TransactionListing(Value):
    """A transactional id in brief. `state` is Kafka's name: "Empty", "Ongoing", ..."""

    __slots__ = ("producer_id", "state", "transactional_id")

    def __init__(self, transactional_id: str, producer_id: int, state: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.state = state


class TransactionDescription(Value):
    """A transactional id.

    `start_ms` is when its last transaction began, in ms since the epoch, None when it never had
    one; `partitions` are those of the transaction that is open or being ended.
    """

    __slots__ = (
        "partitions",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
    )

    def __init__(
        self,
        transactional_id: str,
        state: str,
        *,
        producer_id: int,
        producer_epoch: int,
        timeout_ms: int,
        start_ms: int | None,
        partitions: list[TopicPartition],
    ) -> None:
        self.transactional_id = transactional_id
        self.state = state
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.timeout_ms = timeout_ms
        self.start_ms = start_ms
        self.partitions = partitions


class FencedProducer(Value):
    """What a transactional id has after those who had it were fenced."""

    __slots__ = ("producer_epoch", "producer_id")

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
