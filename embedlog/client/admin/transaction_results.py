"""The admin client's values about transactions."""

from __future__ import annotations

from embedlog.client.admin.value import AdminValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition


class TransactionListing(AdminValue):
    """A transactional id in a listing. `state` is Kafka's name: "Empty", "Ongoing", ..."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(AdminValue):
    """A transactional id.

    `start_ms` is the start of its last transaction in ms since 1970; None before the first.
    `partitions` has the partitions of the transaction that is open or ending.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]


class FencedProducer(AdminValue):
    """The producer id and epoch of a transactional id after its producers were fenced."""

    producer_id: int
    producer_epoch: int
