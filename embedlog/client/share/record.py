"""The results of a share consumer's poll."""

from __future__ import annotations

from embedlog.client.consumer.record import ConsumerRecord, ConsumerRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

    from embedlog.common import TopicPartition

    _Found = list["ShareRecord"]

    def _field(index: int, doc: str) -> int: ...
else:
    from _collections import _tuplegetter as _field


class ShareRecord(ConsumerRecord):
    """A `ConsumerRecord` with one more field: `delivery_count`.

    The count is 1 at the first delivery of the record to a member of the group.

    >>> record = embedlog.ShareRecord(("events", 0, 0, 0, 7, 1700000000000, None, b"v", (), 1))
    >>> record.offset, record.delivery_count
    (7, 1)
    """

    __slots__ = ()

    delivery_count: Final[int] = _field(9, "")

    def __repr__(self) -> str:
        return (
            f"ShareRecord({self.topic!r}, {self.partition}, offset {self.offset}, "
            f"delivery {self.delivery_count}, key={self.key!r}, value={self.value!r})"
        )


class ShareRecords(ConsumerRecords):
    """The records of one poll by partition. Iteration yields them partition by partition.

    >>> records = embedlog.ShareRecords({})
    >>> len(records), list(records)
    (0, [])
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def records(self, topic_partition: TopicPartition) -> _Found: ...  # type: ignore[override]

        def items(self) -> Iterator[tuple[TopicPartition, _Found]]: ...  # type: ignore[override]

        def __getitem__(self, key: TopicPartition, /) -> _Found: ...  # type: ignore[override]

        def __iter__(self) -> Iterator[ShareRecord]: ...

    @staticmethod
    def of_lists(found: dict[TopicPartition, list[ShareRecord]]) -> ShareRecords:
        """Return records that are grouped by partition already."""
        given: dict[TopicPartition, Any] = found
        return ShareRecords({key: [records] for key, records in given.items() if records})

    def __repr__(self) -> str:
        return super().__repr__().replace("ConsumerRecords", "ShareRecords", 1)
