"""What the admin client says about transactions."""

from __future__ import annotations

from embedlog.client.admin.value import AdminValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition


class TransactionListing(AdminValue):
    """A transactional id in brief. `state` is Kafka's name: "Empty", "Ongoing", ..."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(AdminValue):
    """A transactional id.

    `start_ms` is when its last transaction began, in ms since the epoch, None when it never had
    one; `partitions` are those of the transaction that is open or being ended.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]


class FencedProducer(AdminValue):
    """What a transactional id has after those who had it were fenced."""

    producer_id: int
    producer_epoch: int
