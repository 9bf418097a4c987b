"""A share fetch: answered at once, or parked until there are enough records or its time is over.

It waits under two keys for each partition: the partition of the log, for new records, and the share
partition, for records that come back.
"""

from __future__ import annotations

from embedlog.errors import EmbedlogError, KafkaError
from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.runtime.pending import Pending
from embedlog.sharing.share_partition import FENCED, INITIALIZING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from embedlog.sharing.acquisition import Taken, Wish
    from embedlog.sharing.share_partition import SharePartition
    from embedlog.sharing.share_sessions import SessionPlace, ShareSession


class FetchPlace:
    """A partition of a fetch: its share partition or an error; later, what the fetch got of it."""

    __slots__ = ("entry", "error", "share", "taken")

    def __init__(
        self,
        entry: SessionPlace,
        share: SharePartition | None = None,
        error: KafkaError | None = None,
    ) -> None:
        self.entry = entry
        self.share = share
        self.error = error
        self.taken: Taken | None = None

    @property
    def is_loading(self) -> bool:
        """Whether the state of the partition has not come yet; then the answer leaves it out."""
        return self.error is None and self.share is not None and self.share.life == INITIALIZING


class ShareFetchParams:
    """The limits of a fetch as a whole."""

    __slots__ = ("isolation", "max_bytes", "max_wait_ms", "min_bytes", "wish")

    def __init__(
        self, wish: Wish, *, isolation: int, max_bytes: int, min_bytes: int, max_wait_ms: int
    ) -> None:
        """`wish` is the wish for the first partition."""
        self.wish = wish
        self.isolation = isolation
        self.max_bytes = max_bytes
        self.min_bytes = max(1, min(min_bytes, max_bytes))
        self.max_wait_ms = max_wait_ms


class DelayedShareFetch(DelayedOperation):
    """One share fetch. `pending` completes with its places."""

    __slots__ = ("_is_abandoned", "_is_done", "_params", "_places", "_session", "pending")

    def __init__(
        self, session: ShareSession, places: Sequence[FetchPlace], params: ShareFetchParams
    ) -> None:
        DelayedOperation.__init__(self, params.max_wait_ms)
        self._session = session
        self._places = places
        self._params = params
        self._is_abandoned = False
        self._is_done = False
        self.pending: Pending[Sequence[FetchPlace]] = Pending()

    def keys(self) -> list[Hashable]:
        """Return the purgatory keys under which the fetch waits."""
        keys: list[Hashable] = []
        for place in self._places:
            if place.share is not None:
                keys += [place.share.partition.topic_partition, place.share.key]
        return keys

    def try_complete(self) -> bool:
        """Acquire and complete if `min_bytes` can be read, or waiting is pointless.

        Waiting is pointless if a partition has an error, or its share partition has ended.
        """
        if self._is_abandoned:
            return False
        readable: list[FetchPlace] = []
        size = 0
        must_answer = False
        for place in self._places:
            if place.error is None:
                found = self._size_of(place)
                size += found
                if found:
                    readable.append(place)
            is_over = place.share is not None and place.share.life == FENCED
            must_answer = must_answer or is_over or place.error is not None
        if not must_answer and size < self._params.min_bytes:
            return False
        is_any = self._acquire(readable)
        if not is_any and not must_answer:
            return False  # another fetch was faster, or the session is over
        self._is_done = True
        return self.complete_held()

    def on_complete(self) -> None:
        """Answer; after a time-out, with the records that are there."""
        if self._is_abandoned:
            return
        try:
            if not self._is_done:
                self._acquire([each for each in self._places if self._size_of(each)])
                self._is_done = True  # Ctrl-C may let this function run twice
        except BaseException as error:
            self.pending.fail(error)
            if isinstance(error, EmbedlogError):
                return
            raise
        self.pending.complete(self._places)

    def _size_of(self, place: FetchPlace) -> int:
        """Return how many bytes can be read of a partition now; note its error."""
        if place.share is None or place.error is not None:
            return 0
        params = self._params
        try:
            return place.share.readable_size(params.wish, params.max_bytes, params.isolation)
        except KafkaError as error:
            place.error = error
            return 0

    def _acquire(self, readable: Sequence[FetchPlace]) -> bool:
        """Acquire from the partitions in order, within the limits; return whether it got any."""
        params = self._params
        left = params.wish.record_count_max
        is_any = False
        for place in readable:
            if left <= 0:
                break
            assert place.share is not None, place
            wish = params.wish.replace(record_count_max=left)
            room = params.max_bytes // len(readable)
            try:
                place.taken = place.share.acquire(
                    self._session, wish, room, params.isolation, min_one=not is_any
                )
            except KafkaError as error:
                place.error = error
                continue
            if place.taken is not None:
                is_any = True
                left -= place.taken.count
                self._session.to_the_end(place.entry.place)
        return is_any

    def abandon(self) -> None:
        """End the fetch without acquiring or answering, because its client is gone."""
        self._is_abandoned = True
        self.force_complete()
