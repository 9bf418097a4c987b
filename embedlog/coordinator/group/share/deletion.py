"""Deleting state of share groups: of some topics, or of a whole group with the group itself.

    1. the topics are noted as deleting (type 15)
    2. the share coordinator is asked without the shard's lock
    3. its answer: the topics are forgotten, or stay noted; then the group goes

A topic that is noted may be asked for again.
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
    from typing import Any, TypeVar

    from embedlog.coordinator.group.share.membership import Membership
    from embedlog.coordinator.group.share.state_port import Place, StateOfBroker
    from embedlog.errors import KafkaError

    R = TypeVar("R")
    Outcome = Callable[[Mapping[bytes, int]], R]
    """Error code of each topic -> the answer."""


class Deletion:
    """Deletes the state of one shard's groups. Requires: the shard's lock."""

    def __init__(self, membership: Membership, state: StateOfBroker) -> None:
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

        def drop(codes: Mapping[bytes, int]) -> Pending[R]:
            for code in codes.values():
                if code:
                    raise error_for(code)
            dropped: Pending[R] = self._context.write(lambda _shard: self._drop(group_id, response))
            return dropped

        return self.delete_state(group, topic_ids, drop)

    def delete_state(
        self, group: ShareGroup, topic_ids: Iterable[bytes], outcome: Outcome[Any]
    ) -> Result[Any]:
        """Delete the state of topics; answer `outcome(codes)` afterwards, without the lock."""
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
        answer: Pending[Any] = Pending()

        def committed(error: KafkaError | None) -> None:
            if error is None:
                self._context.defer(lambda: self._delete(group_id, places, outcome, answer))

        records = [] if begun == known else [member_records.state_topics(group_id, begun)]
        return Result(records, answer, on_append=committed)

    def _existing(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Leave out deleted topics: the share coordinator has dropped their state by itself."""
        by_id = self._context.metadata().topics_by_id
        return [topic_id for topic_id in topic_ids if topic_id in by_id]

    def _delete(
        self, group_id: str, places: list[Place], outcome: Outcome[Any], answer: Pending[Any]
    ) -> None:
        """Ask the share coordinator. Requires: no lock."""

        def noted(codes: Mapping[Place, int]) -> Pending[Any]:
            by_topic: dict[bytes, int] = {}
            for place in places:
                code = codes.get(place, ErrorCode.UNKNOWN_SERVER_ERROR)
                by_topic[place[0]] = by_topic.get(place[0]) or code
            stored = self._context.write(lambda _shard: self._note(group_id, by_topic))
            return then(stored, lambda _none: outcome(by_topic))

        answer.follow(then(self._state().delete(group_id, places), noted))

    def _note(self, group_id: str, codes: Mapping[bytes, int]) -> Result[Any]:
        """Forget the topics whose state is deleted; topics with an error stay noted."""
        group = self._membership.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return Result()
        gone = [t for t, code in codes.items() if not code and t in group.state_topics.deleting]
        if not gone:
            return Result()
        left = group.state_topics.replace(
            deleting={t: n for t, n in group.state_topics.deleting.items() if t not in gone}
        )
        return Result([member_records.state_topics(group_id, left)])

    def _drop(self, group_id: str, response: R) -> Result[R]:
        """Delete the group, unless members have come while its state was deleted."""
        group = self._membership.empty_group(group_id)
        return Result(group.tombstones(), response)
