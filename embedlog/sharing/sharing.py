"""`Sharing`: the share groups' partitions that one broker leads, and their sessions."""

from __future__ import annotations

from embedlog import errors
from embedlog.controller import features
from embedlog.coordinator.answers import combined
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending
from embedlog.sharing.acknowledgement import checked
from embedlog.sharing.share_fetch import DelayedShareFetch, FetchPlace
from embedlog.sharing.share_partition import FAILED, FENCED, NOT_LOADED, SharePartition
from embedlog.sharing.share_sessions import ShareSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from embedlog.controller.metadata import MetadataDelta
    from embedlog.coordinator.share.state_client import Place
    from embedlog.sharing.metrics import Metrics
    from embedlog.sharing.share_fetch import ShareFetchParams
    from embedlog.sharing.share_sessions import SessionPlace, ShareSession
    from embedlog.sharing.sharing_context import SharingContext

    Key = tuple[str, bytes, int]
    """Group id, topic id, partition number."""

    AckBatches = Sequence[tuple[int, int, Sequence[int]]]

_SOON_MS = 1


class Sharing:
    """Serves the members of share groups. Every method may be called from any thread."""

    def __init__(self, context: SharingContext) -> None:
        self.context = context
        config = context.config
        self.sessions = ShareSessions(
            config.group_share_max_share_sessions,
            session_size_max=config.embedlog_max_fetch_session_partitions,
            total_size_max=config.embedlog_max_fetch_session_cache_partitions,
        )
        self._lock = ranked_lock(Rank.SHARE_SESSIONS)
        self._partitions: dict[Key, SharePartition] = {}

    # Share partitions

    def find(self, group_id: str, place: Place) -> SharePartition | None:
        """Return a share partition that is in memory, loaded or not."""
        return self._partitions.get((group_id, *place))

    def _resolve(self, group_id: str, place: Place) -> SharePartition:
        """Return the share partition; begin to load it if necessary.

        Raises:
            UnknownTopicId, UnknownTopicOrPartition: the partition does not exist.
            NotLeaderOrFollower: another broker leads it.
            KafkaStorageError: its log cannot be opened.
        """
        topic_id, index = place
        image = self.context.metadata()
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            raise errors.UnknownTopicId()
        if image.partition(topic.name, index) is None:
            raise errors.UnknownTopicOrPartition()
        try:
            partition = self.context.replica_manager.partition(topic.name, index)
        except errors.UnknownTopicOrPartition:
            raise errors.NotLeaderOrFollower() from None  # this broker has no replica
        partition.check_leader()
        key = (group_id, *place)
        former = self._partitions.get(key)
        if former is not None and (
            former.partition is not partition
            or former.leader_epoch != partition.leader_epoch
            or former.life in (FAILED, FENCED)
        ):
            former.fence()
        made: SharePartition | None = None
        with self._lock:
            found = self._partitions.get(key)
            if found is None:
                found = made = SharePartition(group_id, partition, self.context, self._removed)
                self._partitions[key] = made
        if made is not None:
            made.load()
        return found

    def _removed(self, partition: SharePartition) -> None:
        with self._lock:
            if self._partitions.get(partition.key) is partition:
                del self._partitions[partition.key]

    def _drop_group(self, group_id: str) -> None:
        """Forget the share partitions of a group that has no sessions here."""
        for partition in list(self._partitions.values()):
            if partition.group_id == group_id and not self.sessions.has(group_id):
                partition.fence()

    def metrics(self) -> dict[tuple[str, str, int], Metrics]:
        """Return the numbers of all share partitions in memory, by group, topic and partition."""
        partitions = list(self._partitions.values())
        return {
            (each.group_id, *each.partition.topic_partition): each.metrics() for each in partitions
        }

    # Requests

    def fetch(
        self, session: ShareSession, entries: Sequence[SessionPlace], params: ShareFetchParams
    ) -> DelayedShareFetch:
        """Fetch partitions of a session in this order. `pending` of the fetch has the answer."""
        places: list[FetchPlace] = []
        for entry in entries:
            try:
                share = self._resolve(session.group_id, entry.place)
                if params.max_bytes < 0:
                    raise errors.UnknownServerError()
            except errors.KafkaError as error:
                if isinstance(error, errors.UnknownTopicId) and entry.is_known:
                    error = errors.UnknownTopicOrPartition()
                places.append(FetchPlace(entry, error=error))
                continue
            entry.is_known = True
            places.append(FetchPlace(entry, share))
        operation = DelayedShareFetch(session, places, params)
        keys = operation.keys()
        if keys:
            self.context.replica_manager.fetch_purgatory.try_complete_else_watch(operation, keys)
        else:
            operation.force_complete()
        return operation

    def acknowledge(
        self,
        group_id: str,
        member_id: str,
        place: Place,
        batches: AckBatches,
        *,
        version: int,
        is_renewal: bool,
    ) -> Pending[errors.KafkaError | None]:
        """Acknowledge records of one partition; the answer is the error, or None."""
        outcome: Pending[errors.KafkaError | None] = Pending()
        try:
            if place[0] not in self.context.metadata().topics_by_id:
                raise errors.UnknownTopicId()
            acknowledgements = checked(batches, version=version, is_renewal=is_renewal)
            share = self._loaded(group_id, place)
            pending = share.acknowledge(member_id, acknowledgements)
        except errors.KafkaError as error:
            outcome.complete(error)
            return outcome

        def stored(done: Pending[None]) -> None:
            error = done.error()
            assert error is None or isinstance(error, errors.KafkaError), error
            outcome.complete(error)

        pending.add_callback(stored)
        return outcome

    def _loaded(self, group_id: str, place: Place) -> SharePartition:
        """Return the share partition if it is in memory and this broker leads it.

        Raises:
            UnknownTopicOrPartition: it is not.
        """
        image = self.context.metadata()
        topic = image.topics_by_id.get(place[0])
        if topic is None or image.partition(topic.name, place[1]) is None:
            raise errors.UnknownTopicOrPartition()
        share = self.find(group_id, place)
        if share is None:
            raise errors.UnknownTopicOrPartition(NOT_LOADED)
        try:
            share.check_leader()
        except errors.KafkaError:
            share.fence()
            raise errors.UnknownTopicOrPartition(NOT_LOADED) from None
        return share

    # Ends

    def end_session(self, session: ShareSession, *, forgets: bool) -> None:
        """Release the records that a member holds in the partitions of its session.

        With `forgets` the group's partitions leave memory if this was its last session here.
        """
        answers: list[None | Pending[None]] = []
        for place in list(session.places):
            share = self.find(session.group_id, place)
            if share is not None:
                answers.append(_whatever(share.release(session.member_id)))
        if not forgets:
            return

        def drop(_answers: list[None]) -> None:
            if not self.sessions.has(session.group_id):
                self._drop_group(session.group_id)

        combined(answers, drop)

    def connection_closed(self, connection: Hashable) -> None:
        """End the session that a closed connection opened last.

        If its member has closed it before, the group's partitions leave memory only now.
        """
        session = self.sessions.connection_closed(connection)
        if session is not None:
            self.end_session(session, forgets=True)

    def on_metadata(self, delta: MetadataDelta) -> None:
        """Soon drop what this broker does not lead any more; all of it if the feature is off.

        Not at once, because the caller holds locks.
        """
        is_off = not delta.image.feature_level(features.SHARE)
        if is_off or delta.deleted or delta.partitions_changed:
            self.context.pause(_SOON_MS).add_callback(lambda _: self._sweep())

    def _sweep(self) -> None:
        image = self.context.metadata()
        is_off = not image.feature_level(features.SHARE)
        if is_off:
            self.sessions.clear()
        for share in list(self._partitions.values()):
            known = image.topics_by_id.get(share.place[0])
            state = None if known is None else image.partition(known.name, share.place[1])
            if (
                is_off
                or state is None
                or state.leader != self.context.replica_manager.node_id
                or state.leader_epoch != share.leader_epoch
            ):
                share.fence()

    def close(self) -> None:
        """End all of it; nothing is released."""
        self.sessions.clear()
        for share in list(self._partitions.values()):
            share.fence()
        self.context.close()


def _whatever(pending: Pending[None]) -> Pending[None]:
    """Return a pending that completes when the other is done, even by an error."""
    over: Pending[None] = Pending()

    def done(_pending: Pending[None]) -> None:
        over.complete(None)

    pending.add_callback(done)
    return over
