"""A fetch: answered at once, or parked until there is enough to answer or its time is over.

A parked one is watched under each of its partitions, so that it costs nothing until one of them
changes. When it completes it reads again: what it saw before it waited is not what it answers.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.pending import Pending
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.fetch_reader import read_partitions, readable_size
from embedlog.replication.replica_manager import nothing_to_load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.replication.fetch_params import FetchParams, FetchPartition
    from embedlog.replication.fetch_reader import FetchRead, Partitions
    from embedlog.replication.replica_manager import ReplicaManager
    from wire.schemas.fetch import FetchResponse


def fetch(
    manager: ReplicaManager,
    params: FetchParams,
    wanted: Sequence[FetchPartition],
    respond: Callable[[FetchRead], FetchResponse],
) -> FetchResponse | DelayedFetch:
    """Read; answer when there is enough or waiting is pointless, else park.

    A parked fetch's `pending` will give the response.
    """
    partitions = manager.partitions
    found = read_partitions(partitions, params, wanted, manager.load)
    if params.max_wait_ms <= 0 or found.size >= params.min_bytes or found.must_answer:
        return respond(found)
    watched = [asked for asked in wanted if asked.key in partitions]
    if not watched:
        return respond(found)
    operation = DelayedFetch(partitions, params, wanted, watched, respond)
    keys = [asked.key for asked in watched]
    if manager.fetch_purgatory.try_complete_else_watch(operation, keys):
        return operation.pending.result()
    return operation


class DelayedFetch(DelayedOperation):
    """One waiting fetch. `respond` makes the response of what the last reading found.

    `watched` are those of the `wanted` partitions that exist: only they can end the wait.
    """

    __slots__ = (
        "_is_abandoned",
        "_is_fresh",
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
        self._is_fresh = True
        self.pending: Pending[FetchResponse] = Pending()

    def try_complete(self) -> bool:
        """Complete when `min_bytes` can be read, or when waiting has become pointless.

        Pointless: a partition went away, changed its leader or was truncated, or the reader's
        history parts from the log's.
        """
        if self._is_fresh:
            # It was read just now, and is tried again once it is watched.
            self._is_fresh = False
            return False
        missing = self._params.min_bytes
        for asked in self._watched:
            partition = self._partitions.get(asked.key)
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
        # Nothing is loaded here: that takes a lock which whoever completes this may hold.
        found = read_partitions(self._partitions, self._params, self._wanted, nothing_to_load)
        self.pending.complete(self._respond(found))

    def on_expiration(self) -> None:
        """The answer was given by `on_complete`."""

    def abandon(self) -> None:
        """Nobody waits for the answer any more: forget the fetch without reading."""
        self._is_abandoned = True
        self.force_complete()
