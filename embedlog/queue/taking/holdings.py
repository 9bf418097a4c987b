"""`Holdings`: the jobs that this process has, and their acknowledgements.

order --hand over--> sent --outcome--> finished, or renewed
"""

from __future__ import annotations

from embedlog.client.share.acknowledge_type import AcknowledgeType
from embedlog.common import deque
from embedlog.errors import InvalidRecordState
from embedlog.logger import Logger
from embedlog.queue.taking.taken import Taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedlog.client.share.record import ShareRecord
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.queue.taking.taken import Place
    from embedlog.runtime.clock import Clock

_LOST = "this process has lost the job's lock: another worker gets the job, or has it"

_log = Logger("queue")


class Holdings:
    """The fetched jobs of one taker, by place. The thread at the wheel changes them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_place: dict[Place, Taken] = {}
        """Fetched jobs without an outcome, with the jobs that no worker has taken yet."""
        self.orders: deque[tuple[Taken, int]] = deque()
        """Acknowledgements that were not handed over. Any thread may append."""
        self._sent: dict[Place, tuple[Taken, int]] = {}
        """Acknowledgements without an outcome, with their types."""
        self.lock_ms = 30_000
        """How long the group locks a job."""
        self.late_count = 0
        """Acknowledgements that came too late."""

    def __len__(self) -> int:
        return len(self._by_place)

    @property
    def has_open(self) -> bool:
        """True while an acknowledgement has no outcome."""
        return bool(self.orders or self._sent)

    def add(self, records: Iterable[ShareRecord]) -> list[Taken]:
        """Note fetched records, and return them as jobs of this process."""
        until_ms = self._clock.monotonic_ms() + self.lock_ms
        added = [Taken(record, until_ms) for record in records]
        self._by_place.update([(taken.place, taken) for taken in added])
        return added

    def has(self, record: ShareRecord) -> bool:
        """Return whether this very delivery of a record was added, and is not finished."""
        taken = self._by_place.get((record.topic, record.partition, record.offset))
        return taken is not None and taken.record is record

    def lose(self, records: Iterable[ShareRecord]) -> None:
        """Note that the locks of records have ended."""
        now_ms = self._clock.monotonic_ms()
        for record in records:
            taken = self._by_place.get((record.topic, record.partition, record.offset))
            if taken is not None and taken.record is record:
                taken.locked_until_ms = now_ms
                self.drop(taken)

    def drop(self, taken: Taken) -> None:
        """Forget a job: it is finished, or its lock has ended."""
        if self._by_place.get(taken.place) is taken:
            del self._by_place[taken.place]

    def order(self, taken: Taken, kind: int) -> None:
        """Choose an acknowledgement. Any thread may call it."""
        if kind == AcknowledgeType.RENEW:
            taken.renewals += 1
        else:
            taken.is_settled = True
        self.orders.append((taken, kind))

    def hand_over(self, acknowledge: Callable[[ShareRecord, int], bool]) -> None:
        """Give the orders to the share consumer."""
        orders = self.orders
        while orders:
            taken, kind = orders[0]
            place = taken.place
            if place in self._sent:
                return  # its renewal is under way; a later pass goes on
            # The process may have got the same job again, after its lock had ended.
            is_present = self._by_place.get(place) is taken
            if is_present and acknowledge(taken.record, kind):
                self._sent[place] = taken, kind
            else:
                self._finish(taken, kind, InvalidRecordState(_LOST))
            orders.popleft()

    def outcome(self, offsets: dict[TopicPartition, set[int]], error: KafkaError | None) -> None:
        """Note the outcome of acknowledgements."""
        for (topic, partition), found in offsets.items():
            for offset in found:
                sent = self._sent.pop((topic, partition, offset), None)
                if sent is not None:
                    self._finish(*sent, error)

    def _finish(self, taken: Taken, kind: int, error: KafkaError | None) -> None:
        if kind == AcknowledgeType.RENEW:
            now_ms = self._clock.monotonic_ms()
            taken.locked_until_ms = now_ms + self.lock_ms if error is None else now_ms
            taken.renewals -= 1
            return
        taken.error = error
        taken.has_outcome = True
        self.drop(taken)
        if error is not None:
            self.late_count += 1
            _log.warning("job %s-%d-%d was settled in vain: %s", *taken.place, error)
