"""Deleting state of share groups: of some topics, or of a whole group with the group itself.

    1. the topics become "deleting" (type 15)
    2. without the shard's lock, a request goes to the share coordinator
    3. after success the topics, or the group, are forgotten; after an error the topics stay
       "deleting"

A later request may name a topic that is still "deleting": its state is deleted once more.
"""

from __future__ import annotations

from embedlog.coordinator.answers import then
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.result import Result
from embedlog.errors import error_for
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from embedlog.coordinator.group.share.membership import Membership
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.share.state_client import Place, ShareStateClient
    from embedlog.errors import KafkaError

    R = TypeVar("R")
    Finish = Callable[[Mapping[bytes, int]], Result[R]]
    """The second write: error code of each topic -> records and answer."""


class Deletion:
    """Deletes the state of one shard's groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership, state: Callable[[], ShareStateClient]) -> None:
        self._membership = membership
        self._context = membership.context
        self._state = state

    def delete_group(self, group: ShareGroup, response: R) -> Result[R]:
        """Delete the group's state, and then the group.

        Raises:
            NonEmptyGroup: the group has members.
        """
        group.validate_delete()
        group_id = group.group_id
        topic_ids = self._existing({*group.state_topics.topic_ids(), *group.state_topics.deleting})
        if not topic_ids:
            return Result(group.tombstones(), response)

        def drop(codes: Mapping[bytes, int]) -> Result[R]:
            for code in codes.values():
                if code:
                    raise error_for(code)
            # Members may have come while the state was deleted.
            present = self._membership.empty_group(group_id)
            return Result(present.tombstones(), response)

        return self.delete_state(group, topic_ids, drop)

    def delete_state(
        self, group: ShareGroup, topic_ids: Iterable[bytes], finish: Finish[R]
    ) -> Result[R]:
        """Delete the state of topics; `finish` follows as another write, and gives the answer."""
        group_id = group.group_id
        known = group.state_topics
        going = set(topic_ids)
        # Kafka keeps no partitions of a topic whose deletion has begun; so ask for all of them.
        metadata = self._context.metadata()
        places = known.places(going - known.deleting.keys())
        places += [
            (topic_id, each.partition)
            for topic_id in going & known.deleting.keys()
            for each in metadata.topics_by_id[topic_id].partitions
        ]
        begun = known.deletion_begun(going - known.deleting.keys())
        answer: Pending[R] = Pending()

        def committed(error: KafkaError | None) -> None:
            if error is None:
                self._context.defer(lambda: self._delete(group_id, places, finish, answer))

        records = [] if begun == known else [member_records.state_topics(group_id, begun)]
        return Result(records, answer, on_append=committed)

    def _existing(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Leave out deleted topics: the share coordinator has dropped their state by itself."""
        by_id = self._context.metadata().topics_by_id
        return [topic_id for topic_id in topic_ids if topic_id in by_id]

    def _delete(
        self, group_id: str, places: list[Place], finish: Finish[R], answer: Pending[R]
    ) -> None:
        """Ask the share coordinator. Requires: no lock."""

        def finished(codes: Mapping[Place, int]) -> Pending[R]:
            by_topic: dict[bytes, int] = {}
            for place in places:
                code = codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)
                by_topic[place[0]] = by_topic.get(place[0]) or code
            written: Pending[R] = self._context.write(lambda _shard: finish(by_topic))
            return written

        answer.follow(then(self._state().delete(group_id, places), finished))

    def forgotten(self, group_id: str, codes: Mapping[bytes, int]) -> list[CoordinatorRecord]:
        """Return the records that forget deleted topics; topics with an error stay noted."""
        group = self._membership.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return []
        deleting = group.state_topics.deleting
        left = {t: name for t, name in deleting.items() if codes.get(t, 1)}
        if left == deleting:
            return []
        return [member_records.state_topics(group_id, group.state_topics.replace(deleting=left))]
