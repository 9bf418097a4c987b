"""Producer ids, taken from blocks: the controller stores each block, not each id."""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_COUNT = 1000


class ProducerIds:
    """The producer ids of one broker. `allocate(count)` stores a new block and returns its ids.

    No id is assigned twice: when the broker stops, the rest of its block is lost.
    """

    def __init__(self, allocate: Callable[[int], range]) -> None:
        self._allocate = allocate
        self._lock = ranked_lock(Rank.PRODUCER_IDS)
        self._block = range(0)

    def next(self) -> int:
        """Return an unused id.

        Raises:
            KafkaError: `allocate` failed.
        """
        with self._lock:
            block = self._block or self._allocate(BLOCK_COUNT)
            self._block = block[1:]
        return block[0]
