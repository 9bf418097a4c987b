"""`ShareHandOut`: makes the results of `poll` from fetched records."""

from __future__ import annotations

from embedlog.client.parse_settings import close_converters, converters
from embedlog.client.share.acknowledge_type import AcknowledgeType
from embedlog.client.share.record import ShareRecords
from embedlog.errors import again

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.share.answers import ShareAnswers
    from embedlog.client.share.fetched import FetchedPartition, Unreadable
    from embedlog.client.share.in_flight import Delivery
    from embedlog.client.share.parts import ShareParts
    from embedlog.client.share.record import ShareRecord
    from embedlog.common import TopicPartition


class ShareHandOut:
    """Moves records from the answers to the application. Used by one thread at a time."""

    def __init__(self, parts: ShareParts, answers: ShareAnswers) -> None:
        self._counts = parts.counts
        self._assignment = parts.assignment
        self._answers = answers
        self._in_flight = parts.in_flight
        self.count_max: int = parts.settings["max.poll.records"]
        key, value = converters(parts.settings, "deserializer")
        self._converters = (key, value)
        self._unreadable: tuple[Delivery, Unreadable] | None = None
        """Found behind records that were handed out; the next poll raises it."""

    @property
    def has_some(self) -> bool:
        """True if `records` may have a result without another answer."""
        return bool(self._answers.fetched or self._answers.errors or self._unreadable)

    def records(self) -> ShareRecords | None:
        """Return the records of the next log batches, about max.poll.records, or None.

        Records whose renewal succeeded come first, and alone.

        Raises:
            RecordUnreadable: the next record is damaged or a deserializer refused it.
            KafkaError: a leader refused a fetch.
        """
        renewed = self._in_flight.take_again()
        if renewed:
            return ShareRecords.of_lists(renewed)
        if self._in_flight.is_renewing:
            return None
        if self._answers.errors:
            raise again(self._answers.errors.popleft())
        if self._unreadable is not None:
            self._raise_unreadable()
        found: dict[TopicPartition, list[ShareRecord]] = {}
        count = 0
        fetched = self._answers.fetched
        try:
            while fetched and count < self.count_max and self._unreadable is None:
                count += self._take_batch(fetched[0], found)
                if fetched[0].is_drained:
                    fetched.popleft()
        except BaseException:
            # Ctrl-C: the application gets none of the records now, and shall not accept them.
            for records in found.values():
                self._in_flight.give_back(records)
            raise
        self._counts["records-consumed-total"] += count
        if count:
            return ShareRecords.of_lists(found)
        if self._unreadable is not None:
            self._raise_unreadable()
        return None

    def release_all(self) -> None:
        """Release the fetched records that the application has not got."""
        while self._answers.fetched:
            self._release(self._answers.fetched.popleft())

    def close(self) -> None:
        self._answers.fetched.clear()
        close_converters(*self._converters)

    def _take_batch(
        self, fetched: FetchedPartition, found: dict[TopicPartition, list[ShareRecord]]
    ) -> int:
        if (fetched.topic_id, fetched.key[1]) not in self._assignment.partitions():
            self._release(fetched)
            return 0
        records, unreadable = fetched.take(self._converters)
        found.setdefault(fetched.key, []).extend(records)
        delivery = self._delivery(fetched)
        delivery.add(records)
        gaps, fetched.gaps = fetched.gaps, []
        delivery.add_gaps(gaps)
        if unreadable is not None:
            self._unreadable = delivery, unreadable
        return len(records)

    def _release(self, fetched: FetchedPartition) -> None:
        """Release the records of a partition that the group has taken away."""
        delivery = self._delivery(fetched)
        delivery.add_gaps(fetched.gaps)
        delivery.types.update(dict.fromkeys(fetched.left(), AcknowledgeType.RELEASE))

    def _delivery(self, fetched: FetchedPartition) -> Delivery:
        return self._in_flight.delivery(fetched.key, fetched.topic_id, fetched.node_id)

    def _raise_unreadable(self) -> None:
        assert self._unreadable is not None, self
        (delivery, unreadable), self._unreadable = self._unreadable, None
        # The delivery may have been taken out of the table meanwhile.
        present = self._in_flight.delivery(delivery.key, delivery.topic_id, delivery.node_id)
        present.fail(unreadable.offsets, unreadable.kind)
        raise unreadable.error
