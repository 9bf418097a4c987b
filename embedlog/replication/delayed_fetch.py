"""A fetch: answered at once, or parked until there is enough to answer or its time is over.

A parked one is watched under its session or under each of its partitions, so that it costs
nothing until something changes there. When it completes it reads again: what it saw before it
waited is not what it answers.
"""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.replication.replica_manager import nothing_to_load
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.replication.fetch_context import FetchContext
    from embedlog.replication.fetch_params import FetchParams
    from embedlog.replication.fetch_reader import FetchRead
    from embedlog.replication.replica_manager import ReplicaManager
    from wire.schemas.fetch import FetchResponse


def fetch(
    manager: ReplicaManager,
    params: FetchParams,
    context: FetchContext,
    respond: Callable[[FetchRead], FetchResponse],
) -> FetchResponse | DelayedFetch:
    """Read; answer when there is enough or waiting is pointless, else park.

    A parked fetch's `pending` will give the response. One that waits at the end of its partitions,
    as most do, is parked unread: reading would only find out the same.
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
    """One waiting fetch. `respond` makes the response of what the last reading found."""

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

        Pointless: a partition went away, changed its leader or was truncated, or the reader's
        history parts from the log's.
        """
        ready = self._context.is_ready(self._manager.partitions, self._params)
        return ready and self.complete_held()

    def on_complete(self) -> None:
        """Read once more, and answer; no error when the time was over, just what there is."""
        if self._is_abandoned:
            return
        try:
            # Nothing is loaded here: that takes a lock which whoever completes this may hold.
            found = self._context.read(self._manager.partitions, self._params, nothing_to_load)
            response = self._respond(found)
        except (EmbedlogError, OSError) as error:
            # It is for who waits to hear of. The thread that came by has appended something, and
            # would do so again if it were told that it failed.
            self.pending.fail(error)
            return
        except BaseException as error:
            self.pending.fail(error)
            raise
        self.pending.complete(response)

    def on_expiration(self) -> None:
        """The answer was given by `on_complete`."""

    def abandon(self) -> None:
        """Nobody waits for the answer any more: forget the fetch without reading."""
        self._is_abandoned = True
        self.force_complete()
