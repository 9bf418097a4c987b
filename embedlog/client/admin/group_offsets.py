"""Admin calls about the offsets of groups, by a client outside the group.

The first use of a call imports its requests. The requests have topic names (versions up to 9) and
not topic ids, because a group may have offsets of deleted topics.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import ItemResults, results_of
from embedlog.common import TopicPartition
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.admin.coordinators import Answer
    from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
    from wire.schemas.offset_commit import OffsetCommitResponse
    from wire.schemas.offset_delete import OffsetDeleteResponse
    from wire.schemas.offset_fetch import (
        OffsetFetchRequestTopics,
        OffsetFetchResponse,
        OffsetFetchResponseTopic,
        OffsetFetchResponseTopics,
    )

    Partitions = Iterable[TopicPartition | tuple[str, int]]
    StoredOffsets = ItemResults[TopicPartition, OffsetAndMetadata | None]

_NAMES_UNTIL = 9
_GROUPS_SINCE = 8
_OF_THE_GROUP = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    )
)
"""Errors that concern the whole group, although OffsetCommit reports them for every partition."""


class GroupOffsetAdmin(AdminPart):
    """Lists, changes and deletes the offsets of groups."""

    @in_turn
    def list_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Partitions | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, StoredOffsets]:
        """Return the committed offsets of groups.

        `groups` are group ids, or a dict with the partitions of each group (None for all). A named
        partition without an offset has the value None. With `require_stable`, an offset in an open
        transaction has the error UnstableOffsetCommit (KIP-447).
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.offset_fetch import (
            OffsetFetchRequest,
            OffsetFetchRequestGroup,
            OffsetFetchRequestTopic,
        )

        ids = arguments.names(groups, "list_group_offsets", "groups", what="group ids")
        wanted: dict[str, list[TopicPartition] | None] = dict.fromkeys(ids)
        for group, keys in groups.items() if hasattr(groups, "items") else ():
            if keys is not None:
                where = f"groups: {group}"
                wanted[group] = arguments.partitions(keys, "list_group_offsets", where)

        def request_for(asked: list[str], version: int) -> OffsetFetchRequest:
            if version >= _GROUPS_SINCE:
                questions = [
                    OffsetFetchRequestGroup(group_id=each, topics=_questions(wanted[each]))
                    for each in asked
                ]
                return OffsetFetchRequest(groups=questions, require_stable=require_stable)
            (group,) = asked
            topics = _questions(wanted[group])
            old = [
                OffsetFetchRequestTopic(name=each.name, partition_indexes=each.partition_indexes)
                for each in topics or ()
            ]
            return OffsetFetchRequest(
                group_id=group,
                topics=None if topics is None else old,
                require_stable=require_stable,
            )

        outcomes = CoordinatorCalls(self._calls, timeout_ms).ask(
            wanted,
            OffsetFetchRequest,
            request_for,
            _fetched,
            version_max=_NAMES_UNTIL,
            several_since=_GROUPS_SINCE,
        )
        return results_of(outcomes)

    @in_turn
    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
        | Mapping[tuple[str, int], OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Store offsets for a group. If it has members, the error is UnknownMemberId.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was stored.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from embedlog.client.consumer.group.group_offsets import offsets_of
        from wire.schemas.offset_commit import (
            OffsetCommitRequest,
            OffsetCommitRequestPartition,
            OffsetCommitRequestTopic,
        )

        call = "alter_group_offsets"
        arguments.name(group_id, call, "group_id", what="a group's id")
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, number), stored in offsets_of(offsets, call).items():
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
            topic.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=stored.offset,
                    committed_leader_epoch=stored.leader_epoch,
                    committed_metadata=stored.metadata,
                )
            )

        def take(response: OffsetCommitResponse) -> Answer[OffsetCommitResponse]:
            codes = [each.error_code for topic in response.topics for each in topic.partitions]
            of_the_group = [code for code in codes if code in _OF_THE_GROUP]
            return (of_the_group[0] if of_the_group else 0), f"group {group_id!r}", response

        response = CoordinatorCalls(self._calls, timeout_ms).ask_one(
            group_id,
            OffsetCommitRequest,
            lambda _version: OffsetCommitRequest(group_id=group_id, topics=list(topics.values())),
            take,
            version_max=_NAMES_UNTIL,
        )
        return _outcomes(response)

    @in_turn
    def delete_group_offsets(
        self, group_id: str, partitions: Partitions, *, timeout_ms: int | None = None
    ) -> ItemResults[TopicPartition, None]:
        """Delete the offsets of partitions whose topics no member has subscribed to.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was deleted.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.offset_delete import (
            OffsetDeleteRequest,
            OffsetDeleteRequestPartition,
            OffsetDeleteRequestTopic,
        )

        arguments.name(group_id, "delete_group_offsets", "group_id", what="a group's id")
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for name, number in arguments.partitions(partitions, "delete_group_offsets"):
            topic = topics.setdefault(name, OffsetDeleteRequestTopic(name=name))
            topic.partitions.append(OffsetDeleteRequestPartition(partition_index=number))
        response = CoordinatorCalls(self._calls, timeout_ms).ask_one(
            group_id,
            OffsetDeleteRequest,
            lambda _version: OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())),
            lambda response: (response.error_code, f"group {group_id!r}", response),
        )
        return _outcomes(response)


def _questions(keys: list[TopicPartition] | None) -> list[OffsetFetchRequestTopics] | None:
    if keys is None:
        return None
    from wire.schemas.offset_fetch import OffsetFetchRequestTopics

    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, number in keys:
        topic = topics.setdefault(name, OffsetFetchRequestTopics(name=name))
        topic.partition_indexes.append(number)
    return list(topics.values())


def _fetched(response: OffsetFetchResponse, asked: list[str]) -> dict[str, Answer[StoredOffsets]]:
    if not response.groups:
        return {asked[0]: (response.error_code, None, _stored(response.topics))}
    return {
        each.group_id: (each.error_code, None, _stored(each.topics)) for each in response.groups
    }


def _stored(
    topics: Iterable[OffsetFetchResponseTopic] | Iterable[OffsetFetchResponseTopics],
) -> StoredOffsets:
    from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata

    results: StoredOffsets = ItemResults()
    for topic in topics:
        for each in topic.partitions:
            offset = each.committed_offset
            stored = (
                None
                if offset < 0
                else OffsetAndMetadata(offset, each.metadata or "", each.committed_leader_epoch)
            )
            key = TopicPartition(topic.name, each.partition_index)
            results.put(key, stored, each.error_code, f"offset of {key}")
    return results


def _outcomes(
    response: OffsetCommitResponse | OffsetDeleteResponse,
) -> ItemResults[TopicPartition, None]:
    results: ItemResults[TopicPartition, None] = ItemResults()
    for topic in response.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            results.put(key, None, each.error_code, str(key))
    return results
