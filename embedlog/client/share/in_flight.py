"""`InFlight`: the records that a share consumer's application has, until they are acknowledged.

    delivered --acknowledge--> acknowledged --take--> out of this object
                                            `-RENEW-> renewing --answer--> to return again
    delivered --give_back---------------------------------------------->  to return again

Records to return again are the result of the next poll, which fetches nothing.
"""

from __future__ import annotations

from embedlog.client.share.acknowledge_type import GAP, AcknowledgeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.client.share.record import ShareRecord
    from embedlog.common import TopicPartition


class Delivery:
    """The offsets of one partition that one leader has delivered."""

    __slots__ = ("again", "key", "node_id", "records", "renewing", "topic_id", "types")

    def __init__(self, key: TopicPartition, topic_id: bytes, node_id: int) -> None:
        self.key = key
        self.topic_id = topic_id
        self.node_id = node_id
        """The leader, which alone can take the acknowledgements."""
        self.records: dict[int, ShareRecord | None] = {}
        """By offset, the records that the application has; None for an unreadable record."""
        self.types: dict[int, int] = {}
        """By offset, the acknowledgements that were not taken yet."""
        self.renewing: dict[int, ShareRecord] = {}
        self.again: dict[int, ShareRecord] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.records or self.types or self.renewing or self.again)

    def add(self, records: Iterable[ShareRecord]) -> None:
        """Note records that the application gets."""
        self.records.update([(record.offset, record) for record in records])

    def add_gaps(self, offsets: Iterable[int]) -> None:
        """Acknowledge acquired offsets that have no record."""
        self.types.update(dict.fromkeys(offsets, GAP))

    def fail(self, offsets: Iterable[int], kind: int) -> None:
        """Acknowledge unreadable records; the application may choose another type."""
        self.records.update(dict.fromkeys(offsets))
        self.types.update(dict.fromkeys(offsets, kind))

    def acknowledge(self, offset: int, kind: int) -> bool:
        """Set the type of a record; return False if the application does not have the record."""
        if offset in self.again:
            self.records[offset] = self.again.pop(offset)
        if offset not in self.records:
            return False
        self.types[offset] = kind
        return True

    def take(self, *, accepts: bool) -> dict[int, int]:
        """Return and forget the acknowledgements; with `accepts`, accept all other records."""
        records, types = self.records, self.types
        if accepts:
            types = dict.fromkeys(records, AcknowledgeType.ACCEPT) | types
        self.types = {}
        for offset, kind in types.items():
            record = records.pop(offset, None)
            if kind == AcknowledgeType.RENEW and record is not None:
                self.renewing[offset] = record
        return types

    def settle(self, offsets: Iterable[int], *, renewed: bool) -> None:
        """Note the outcome of acknowledgements: return renewed records again, drop the others."""
        for offset in offsets:
            record = self.renewing.pop(offset, None)
            if record is not None and renewed:
                self.again[offset] = record

    def give_back(self, offset: int) -> None:
        """Return a record again in the next poll: its poll was cancelled."""
        record = self.records.pop(offset, None)
        if record is not None:
            self.types.pop(offset, None)
            self.again[offset] = record


class InFlight:
    """All deliveries of one share consumer. Used by one thread at a time."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, int], list[Delivery]] = {}

    def delivery(self, key: TopicPartition, topic_id: bytes, node_id: int) -> Delivery:
        """Return the delivery of a partition by a leader; make it if there is none."""
        deliveries = self._by_key.setdefault(key, [])
        for each in deliveries:
            if each.topic_id == topic_id and each.node_id == node_id:
                return each
        made = Delivery(key, topic_id, node_id)
        deliveries.append(made)
        return made

    @property
    def is_renewing(self) -> bool:
        """True while the leader of a record has not answered its renewal."""
        return any(each.renewing for each in self._all())

    @property
    def has_again(self) -> bool:
        """True if the next poll returns records again."""
        return any(each.again for each in self._all())

    @property
    def open_count(self) -> int:
        """Number of records that the application has got and has not acknowledged."""
        return sum(len(each.records.keys() - each.types.keys()) for each in self._all())

    def acknowledge(self, key: tuple[str, int], offset: int, kind: int) -> bool:
        """Set the type of a record; return False if the application does not have the record."""
        return any(each.acknowledge(offset, kind) for each in self._by_key.get(key, ()))

    def take(self, *, accepts: bool) -> list[tuple[Delivery, dict[int, int]]]:
        """Return and forget all acknowledgements; with `accepts`, accept all other records."""
        taken = [(each, each.take(accepts=accepts)) for each in self._all()]
        for key in list(self._by_key):
            self._by_key[key] = [each for each in self._by_key[key] if not each.is_empty]
            if not self._by_key[key]:
                del self._by_key[key]
        return [(delivery, types) for delivery, types in taken if types]

    def take_again(self) -> dict[TopicPartition, list[ShareRecord]]:
        """Hand the records that shall be returned again to the application."""
        found: dict[TopicPartition, list[ShareRecord]] = {}
        for each in self._all():
            if each.again:
                records = [each.again[offset] for offset in sorted(each.again)]
                each.again = {}
                each.add(records)
                found.setdefault(each.key, []).extend(records)
        return found

    def give_back(self, records: Iterable[ShareRecord]) -> None:
        """Return these records again in the next poll: their poll was cancelled."""
        for record in records:
            for each in self._by_key.get((record.topic, record.partition), ()):
                if each.records.get(record.offset) is record:
                    each.give_back(record.offset)

    def lose(self, node_id: int) -> list[ShareRecord]:
        """Forget the records that one leader has delivered, and return them."""
        lost: list[ShareRecord] = []
        for each in self._all():
            if each.node_id == node_id:
                held = (*each.records.values(), *each.renewing.values(), *each.again.values())
                lost += [record for record in held if record is not None]
                each.records.clear()
                each.types.clear()
                each.renewing.clear()
                each.again.clear()
        return lost

    def _all(self) -> list[Delivery]:
        return [each for deliveries in self._by_key.values() for each in deliveries]
