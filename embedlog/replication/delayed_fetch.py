"""A fetch: answered at once, or parked until there are enough records or its time is over.

A parked fetch waits in the purgatory under its session, or under each of its partitions. So it
costs nothing until one of them changes. On completion it reads again, because the log has changed
since it was parked.
"""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.replica_manager import ReplicaManager, nothing_to_load
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.fetch_context import FetchContext
    from embedlog.replication.fetch_params import FetchParams
    from embedlog.replication.fetch_reader import FetchRead
    from wire.schemas.fetch import FetchResponse


def fetch(
    manager: ReplicaManager,
    params: FetchParams,
    context: FetchContext,
    respond: Callable[[FetchRead], FetchResponse],
) -> FetchResponse | DelayedFetch:
    """Read; answer if there are enough records or waiting is pointless, otherwise park the fetch.

    The `pending` of a parked fetch completes with the response. Most fetches wait at the end of
    their partitions. They are parked without reading, because reading would find nothing.
    """
    partitions = manager.partitions
    if params.replica_id >= 0 and manager.replication is not None:
        manager.replication.note_fetch(params, context, manager.load)
    may_wait = params.max_wait_ms > 0 and params.min_bytes > 0
    keys = context.keys_at_end(partitions, params) if may_wait else ()
    if not keys:
        found = context.read(partitions, params, manager.load)
        if not may_wait or found.size >= params.min_bytes or found.must_answer:
            return respond(found)
        keys = context.watch_keys(partitions)
        if not keys:
            return respond(found)
    operation = DelayedFetch(manager, params, context, respond)
    if manager.fetch_purgatory.watch(operation, keys):
        return operation.pending.result()
    return operation


class DelayedFetch(DelayedOperation):
    """One waiting fetch. `respond` turns the result of the last reading into the response."""

    __slots__ = (
        "_context",
        "_is_abandoned",
        "_manager",
        "_params",
        "_respond",
        "pending",
    )

    def __init__(
        self,
        manager: ReplicaManager,
        params: FetchParams,
        context: FetchContext,
        respond: Callable[[FetchRead], FetchResponse],
    ) -> None:
        DelayedOperation.__init__(self, params.max_wait_ms)
        self._manager = manager
        self._params = params
        self._context = context
        self._respond = respond
        self._is_abandoned = False
        self.pending: Pending[FetchResponse] = Pending()

    def try_complete(self) -> bool:
        """Complete when `min_bytes` can be read, or when waiting has become pointless.

        Waiting is pointless once a partition was removed or truncated, has another leader, or has
        another history than the reader.
        """
        ready = self._context.is_ready(self._manager.partitions, self._params)
        return ready and self.complete_held()

    def on_complete(self) -> None:
        """Read once more and answer with the result, also after a timeout."""
        if self._is_abandoned:
            return
        try:
            # Do not load partitions here: loading takes a lock that the completing thread may hold.
            found = self._context.read(self._manager.partitions, self._params, nothing_to_load)
            response = self._respond(found)
        except (EmbedlogError, OSError) as error:
            # Report the error to the waiting fetch only. The completing thread may be an append,
            # whose caller would append its records again after an error.
            self.pending.fail(error)
            return
        except BaseException as error:
            self.pending.fail(error)
            raise
        self.pending.complete(response)

    def abandon(self) -> None:
        """End the fetch without reading or answering, because its client is gone."""
        self._is_abandoned = True
        self.force_complete()
