"""Records that failed, until somebody looks: a failure must not go by unnoticed.

Who has a callback, or asks a future for its result or error, knows. The others are told when the
producer's `with` is left, or by a warning when it is closed.
"""

from __future__ import annotations

from embedlog.client.producer.producer_records import tells_user
from embedlog.common import deque
from embedlog.logs import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.producer_batch import ProducerBatch

_KEPT_MAX = 1_000
_log = Log("client")


class Failures:
    """The failed batches of one producer, the newest `_KEPT_MAX` of them."""

    __slots__ = ("_failed",)

    def __init__(self) -> None:
        self._failed: deque[ProducerBatch] = deque(maxlen=_KEPT_MAX)

    def add(self, batch: ProducerBatch) -> None:
        """The batch has failed. Requires: its error is known."""
        count = max(batch.record_count, 1)
        _log.info("%d records for %s were given up: %s", count, batch.place, batch.error)
        told = [callback for _, callback in batch.callbacks or () if tells_user(callback)]
        if len(told) < count:
            self._failed.append(batch)

    def take_unseen(self) -> Exception | None:
        """The first error that nobody has looked at, and forget them all; None if there is none.

        A note at it says how many records failed unseen.
        """
        unseen = [batch for batch in self._failed if not batch.is_error_seen]
        self._failed.clear()
        if not unseen:
            return None
        error = unseen[0].error
        assert error is not None, unseen[0]
        count = sum([max(batch.record_count, 1) for batch in unseen])
        places = ", ".join(sorted({batch.place for batch in unseen})[:5])
        text = (
            f"{count} records for {places} were not delivered, and nobody looked at their futures: "
            f"{type(error).__name__}: {error}"
        )
        error.add_note(text)
        return error
