"""A fetch that waits until there is enough to answer, or until its time is over.

It is watched under each of its partitions, so that it costs nothing until one of them changes.
When it completes it reads again: what it saw before it waited is not what it answers.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.pending import Pending
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.fetch_reader import read_partitions, readable_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.replication.fetch_params import FetchParams, FetchPartition
    from embedlog.replication.fetch_reader import FetchRead, Partitions
    from wire.schemas.fetch import FetchResponse


class DelayedFetch(DelayedOperation):
    """One waiting fetch. `respond` makes the response of what the last reading found.

    `watched` are those of the `wanted` partitions that exist: only they can end the wait.
    """

    __slots__ = (
        "_is_abandoned",
        "_params",
        "_partitions",
        "_respond",
        "_wanted",
        "_watched",
        "pending",
    )

    def __init__(
        self,
        partitions: Partitions,
        params: FetchParams,
        wanted: Sequence[FetchPartition],
        watched: Sequence[FetchPartition],
        respond: Callable[[FetchRead], FetchResponse],
    ) -> None:
        super().__init__(params.max_wait_ms)
        self._partitions = partitions
        self._params = params
        self._wanted = wanted
        self._watched = watched
        self._respond = respond
        self._is_abandoned = False
        self.pending: Pending[FetchResponse] = Pending()

    def try_complete(self) -> bool:
        """Complete when `min_bytes` can be read, or when waiting has become pointless.

        Pointless: a partition went away, changed its leader or was truncated, or the reader's
        history parts from the log's.
        """
        missing = self._params.min_bytes
        for asked in self._watched:
            partition = self._partitions.get(asked.topic_partition)
            if partition is None:
                return self.force_complete()
            try:
                missing -= readable_size(partition, self._params, asked)
            except (errors.KafkaError, errors.CorruptRecord):
                return self.force_complete()
            if missing <= 0:
                return self.force_complete()
        return False

    def on_complete(self) -> None:
        """Read once more, and answer; no error when the time was over, just what there is."""
        if self._is_abandoned:
            return
        found = read_partitions(self._partitions, self._params, self._wanted)
        self.pending.complete(self._respond(found))

    def on_expiration(self) -> None:
        """The answer was given by `on_complete`."""

    def abandon(self) -> None:
        """Nobody waits for the answer any more: forget the fetch without reading."""
        self._is_abandoned = True
        self.force_complete()
