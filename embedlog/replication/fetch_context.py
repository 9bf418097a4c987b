"""The two kinds of fetch requests: the partitions that they read, and the form of their answers.

    FullFetch          names all its partitions, and its answer has all of them; may begin a session
    IncrementalFetch   continues a session: reads the session's active partitions, and its answer
                       has only partitions with news

A partition of a session is *active* while it may have news for the client. A read that finds no
news puts it to rest; any later change makes it active again (see `ReplicaManager`). So an idle
fetch of ten thousand partitions reads none of them.

To put a partition to rest, remove it from `active` first and read it afterwards. The read sees
every change that came before the removal; every later change adds the partition again. So no lock
is needed.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.replication.fetch_reader import READ_ERRORS, is_at_end, read_partitions, readable_size
from embedlog.replication.partition import Isolation
from wire.schema import bare
from wire.schemas.fetch import FetchableTopicResponse, FetchResponse, PartitionData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from embedlog.replication.fetch_params import FetchParams
    from embedlog.replication.fetch_reader import FetchRead, Partitions
    from embedlog.replication.fetch_session import FetchPartition, FetchSession
    from embedlog.replication.partition import Partition

    Load = Callable[[str, int], Partition | None]
    PartitionKey = tuple[str, int]

NO_SESSION = 0


class FullFetch:
    """A fetch that names all its partitions. The answer has them in the same order.

    `begin_session` begins a session of these partitions and returns its id, or 0 if there is none.

    Reading begins at the partition `first`, if it is set. After the read, `cut_at` is the first
    partition that was left out because `FetchParams.target_bytes` were reached. The connection's
    next fetch begins there. So even a client with a fixed order of partitions gets records of its
    last partition. (If the client's own limit leaves partitions out, the client must rotate them,
    as with Kafka.)
    """

    __slots__ = ("_begin_session", "_known", "cut_at", "first", "wanted")

    @property
    def named(self) -> Sequence[FetchPartition]:
        """The partitions that the request names: all of them."""
        return self.wanted

    def __init__(
        self, wanted: Sequence[FetchPartition], begin_session: Callable[[], int] | None = None
    ) -> None:
        self.wanted = wanted
        self.first: PartitionKey | None = None
        self.cut_at: PartitionKey | None = None
        self._begin_session = begin_session
        self._known: Sequence[FetchPartition] = ()

    def keys_at_end(self, partitions: Partitions, params: FetchParams) -> Sequence[Hashable]:
        """Return the keys of `watch_keys` if a read is sure to find no records and no error.

        Otherwise return no keys.
        """
        keys: list[Hashable] = []
        for asked in self.wanted:
            key = asked.key
            partition = partitions.get(key)
            if partition is None or not is_at_end(partition, params, asked):
                return ()
            keys.append(key)
        self._known = self.wanted
        return keys

    def read(self, partitions: Partitions, params: FetchParams, load: Load) -> FetchRead:
        """Read every partition, beginning at `first`."""
        wanted = order = self.wanted
        count = 0
        if self.first is not None:
            count = next((i for i, asked in enumerate(wanted) if asked.key == self.first), 0)
            order = [*wanted[count:], *wanted[:count]]
        found = read_partitions(partitions, params, order, load)
        self.cut_at = None if found.cut_at is None else order[found.cut_at].key
        if count:
            found.asked = wanted
            found.data = found.data[-count:] + found.data[:-count]
        return found

    def watch_keys(self, partitions: Partitions) -> Sequence[Hashable]:
        """Return the purgatory keys to wait under: the partitions that exist here."""
        self._known = [asked for asked in self.wanted if asked.key in partitions]
        return [asked.key for asked in self._known]

    def is_ready(self, partitions: Partitions, params: FetchParams) -> bool:
        """Return whether a parked fetch has enough to answer, or need not wait any longer."""
        missing = params.min_bytes
        for asked in self._known:
            partition = partitions.get(asked.key)
            if partition is None:
                return True
            try:
                missing -= readable_size(partition, params, asked)
            except READ_ERRORS:
                return True
            if missing <= 0:
                return True
        return False

    def respond(self, found: FetchRead) -> FetchResponse:
        """Build the response with every partition; first begin a session if one is requested."""
        session_id = NO_SESSION
        if self._begin_session is not None:
            for asked, data in zip(found.asked, found.data, strict=True):
                asked.note_answered(data)
            session_id = self._begin_session()
        return _response(session_id, _by_topic(found.asked, found.data))


class IncrementalFetch:
    """A fetch that continues a session, whose next request must have the epoch `epoch`."""

    __slots__ = ("_epoch", "named", "session")

    def __init__(
        self, session: FetchSession, epoch: int, named: Sequence[FetchPartition] = ()
    ) -> None:
        self.session = session
        self.named = named
        """The partitions that the request names."""
        self._epoch = epoch

    def keys_at_end(self, partitions: Partitions, params: FetchParams) -> Sequence[Hashable]:
        """Return the key of `watch_keys` if a read is sure to find nothing new; else no key.

        Partitions with nothing new are put to rest.
        """
        session = self.session
        if params.isolation != session.isolation:
            return ()
        active = session.active
        for asked in list(active):
            rests = False
            try:
                active.pop(asked, None)
                partition = partitions.get(asked.key)
                rests = (
                    partition is not None
                    and partition is asked.source
                    and is_at_end(partition, params, asked)
                    and asked.was_told(partition)
                )
            finally:
                if not rests:
                    active[asked] = None
            if not rests:
                return ()
        return (session,)

    def read(self, partitions: Partitions, params: FetchParams, load: Load) -> FetchRead:
        """Read the active partitions, and put those without news to rest."""
        session = self.session
        if params.isolation != session.isolation:
            # The isolation level decides where a partition ends, so read every partition again.
            session.isolation = params.isolation
            session.active.update(dict.fromkeys(session.partitions.values()))
        active = session.active
        wanted = list(active)
        if len(wanted) > 1:
            wanted.sort(key=_rank)
        try:
            for asked in wanted:
                active.pop(asked, None)
                source = partitions.get(asked.key)
                if source is not asked.source:
                    asked.follow(source)
            found = read_partitions(partitions, params, wanted, load)
        except BaseException:
            active.update(dict.fromkeys(wanted))
            raise
        for asked, data in zip(wanted, found.data, strict=True):
            if data.records or asked.has_news(data) or not _is_at_end(asked, data, params):
                active[asked] = None
        return found

    def watch_keys(self, partitions: Partitions) -> Sequence[Hashable]:
        """Return the purgatory key of the session; no key if none of its partitions exists."""
        session = self.session
        active = list(session.active)
        if len(active) == len(session.partitions) and all(
            asked.key not in partitions for asked in active
        ):
            return ()
        return (session,)

    def is_ready(self, partitions: Partitions, params: FetchParams) -> bool:
        """Return whether a parked fetch has enough to answer, or need not wait any longer."""
        missing = params.min_bytes
        for asked in list(self.session.active):
            partition = partitions.get(asked.key)
            if partition is None:
                if asked.source is not None:
                    return True
                continue  # never hosted here: only the removal of a hosted partition ends the wait
            try:
                missing -= readable_size(partition, params, asked)
            except READ_ERRORS:
                return True
            if missing <= 0:
                return True
        return False

    def respond(self, found: FetchRead) -> FetchResponse:
        """Build the response with the partitions that have news."""
        session = self.session
        told: list[FetchPartition] = []
        news: list[PartitionData] = []
        with session.lock:
            if session.epoch != self._epoch:
                # The client has abandoned this request and sent another.
                return FetchResponse(error_code=errors.InvalidFetchSessionEpoch.code)
            for asked, data in zip(found.asked, found.data, strict=True):
                has_records = bool(data.records)
                if has_records or asked.has_news(data):
                    asked.note_answered(data)
                    told.append(asked)
                    news.append(data)
                    if has_records:
                        # Otherwise this partition could fill every answer: read the others
                        # first next time.
                        session.move_to_end(asked)
        return _response(session.id, _by_topic(told, news))


def _response(session_id: int, topics: list[FetchableTopicResponse]) -> FetchResponse:
    """Build a response. Set it field by field, for speed: each wake-up of a consumer needs one."""
    response = bare(FetchResponse)
    response.throttle_time_ms = 0
    response.error_code = 0
    response.session_id = session_id
    response.responses = topics
    response.node_endpoints = []
    return response


def _is_at_end(asked: FetchPartition, data: PartitionData, params: FetchParams) -> bool:
    """Return whether the reader is at the end of a partition that is hosted here."""
    source = asked.source
    if source is None:
        return False
    end_offset = data.high_watermark
    if params.isolation == Isolation.LAST_STABLE:
        end_offset = data.last_stable_offset
    elif params.isolation == Isolation.LOG_END:
        # A log that has grown since the read is no problem: its partition is active again.
        end_offset = source.log.log_end_offset
    return asked.fetch_offset >= end_offset


def _rank(asked: FetchPartition) -> int:
    return asked.rank


def _by_topic(
    asked: Iterable[FetchPartition], data: list[PartitionData]
) -> list[FetchableTopicResponse]:
    """Group the answers by topic without reordering: only consecutive answers share an entry."""
    topics: list[FetchableTopicResponse] = []
    last: FetchPartition | None = None
    for partition, found in zip(asked, data, strict=True):
        if (
            last is not None
            and partition.topic == last.topic
            and partition.topic_id == last.topic_id
        ):
            topics[-1].partitions.append(found)
            continue
        last = partition
        topic = bare(FetchableTopicResponse)
        topic.topic = partition.topic
        topic.topic_id = partition.topic_id
        topic.partitions = [found]
        topics.append(topic)
    return topics


if TYPE_CHECKING:
    FetchContext = FullFetch | IncrementalFetch
