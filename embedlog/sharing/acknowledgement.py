"""What a member says about its records: the checks in Kafka's order, then the moves.

The batches of one partition are one unit: the first bad one undoes all before it.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Value
from embedlog.sharing.delivery import Cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.sharing.delivery import Rules
    from embedlog.sharing.in_flight import AcquisitionLock, InFlightBatch, Run, Transition
    from embedlog.sharing.window import DeliveryWindow

_FIRST_WITH_RENEWAL = 2


class Acknowledgement(Value):
    """A cause for the offsets from `first` to `last`, or one cause for each of them."""

    first: int
    last: int
    causes: tuple[int, ...]

    def cause_at(self, offset: int) -> int:
        return self.causes[0] if len(self.causes) == 1 else self.causes[offset - self.first]

    @property
    def borders(self) -> list[int]:
        """The offsets with another cause than the offset before them."""
        first, causes = self.first, self.causes
        pairs = zip(causes, causes[1:], strict=False)
        return [first + index + 1 for index, (one, next) in enumerate(pairs) if one != next]


def checked(
    batches: Sequence[tuple[int, int, Sequence[int]]], *, version: int, is_renewal: bool
) -> list[Acknowledgement]:
    """Return the batches of a request, (first, last, types) each, if their form is right.

    Raises:
        InvalidRequest: the offsets are not in order, or the types do not fit.
    """
    previous = -1
    highest = Cause.RENEW if version >= _FIRST_WITH_RENEWAL else Cause.REJECT
    made: list[Acknowledgement] = []
    for first, last, types in batches:
        is_in_order = previous <= first <= last
        if not is_in_order or len(types) not in (1, last - first + 1):
            raise errors.InvalidRequest()
        if min(types) < Cause.GAP or max(types) > highest:
            raise errors.InvalidRequest()
        if Cause.RENEW in types and not is_renewal:
            raise errors.InvalidRequest()
        previous = last
        made.append(Acknowledgement(first, last, tuple(types)))
    return made


class Application:
    """The acknowledgements of one request, applied to a window.

    Requires: the share partition's lock.
    """

    def __init__(
        self,
        window: DeliveryWindow,
        member_id: str,
        rules: Rules,
        *,
        may_renew: bool,
    ) -> None:
        self._window = window
        self._member_id = member_id
        self._rules = rules
        self._may_renew = may_renew
        self.moving: list[Transition] = []
        """The moves that wait until the share coordinator has stored them."""
        self._renewed: list[tuple[InFlightBatch, Run]] = []

    def apply(
        self,
        batches: Sequence[Acknowledgement],
        make_lock: Callable[[InFlightBatch], AcquisitionLock],
    ) -> None:
        """Begin the moves of all batches, and renew locks.

        Raises:
            InvalidRequest: offsets beyond the window.
            InvalidRecordState: a record is not the member's; then nothing has changed.
        """
        try:
            for acknowledgement in batches:
                self._apply(acknowledgement)
        except errors.KafkaError:
            for each in self.moving:
                for run in each.runs:
                    run.cancel()
            self.moving.clear()
            raise
        for batch, run in self._renewed:
            if run.is_held:
                run.renew(make_lock(batch))

    def _apply(self, each: Acknowledgement) -> None:
        window = self._window
        first = max(each.first, window.start_offset)
        if each.last < first:
            return  # all of it is below the start: it was acknowledged, or has gone
        holder = window.holding(first)
        if holder is None:
            raise errors.InvalidRecordState(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        if first > window.end_offset:
            raise errors.InvalidRequest(
                "Batch record not found. The first offset in request is past acquired records."
            )
        if each.last > window.end_offset:
            raise errors.InvalidRequest(
                "Batch record not found. The last offset in request is past acquired records."
            )
        position = first
        for batch in window.overlapping(first, each.last):
            if batch.first > position:
                break  # a gap, which nobody has acquired
            self._check(batch, first, each.last)
            for run in batch.isolate(first, each.last, each.borders):
                self._begin(batch, run, each.cause_at(run.first))
            position = batch.last + 1
        if position <= each.last:
            raise errors.InvalidRecordState(
                "Batch record not found. The request batch offsets are not found in the cache."
            )

    def _check(self, batch: InFlightBatch, first: int, last: int) -> None:
        """Refuse records that are not the member's."""
        noun = "offset" if batch.is_split else "batch record"
        subject = "offset" if batch.is_split else "batch"
        for run in batch.within(first, last):
            if run.owner and run.owner != self._member_id:
                raise errors.InvalidRecordState(f"Member is not the owner of {noun}")
            if not run.is_held:
                raise errors.InvalidRecordState(
                    f"The {subject} cannot be acknowledged. The {subject} is not acquired."
                    if batch.is_split
                    else "The batch cannot be acknowledged. The batch is not in the acquired state."
                )

    def _begin(self, batch: InFlightBatch, run: Run, cause: int) -> None:
        if cause == Cause.RENEW:
            if not self._may_renew:
                raise errors.InvalidRecordState(
                    "Renewing acquisition locks is not enabled for the group."
                )
            self._renewed.append((batch, run))
            return
        self.moving.append(run.begin(self._rules.refine(cause, run.count)))
