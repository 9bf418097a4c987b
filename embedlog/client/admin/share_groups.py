"""Admin calls about share groups and their start offsets (KIP-932), by a client outside the group.

The first use of a call imports its requests.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.groups import GroupDescription, MemberDescription, operations
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import AdminValue, ItemResults, results_of
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.admin.coordinators import Answer
    from embedlog.client.cluster_nodes import Node
    from wire.schemas.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequestTopic,
        DescribeShareGroupOffsetsResponse,
        DescribeShareGroupOffsetsResponseGroup,
    )
    from wire.schemas.share_group_describe import DescribedGroup, ShareGroupDescribeResponse

    Partitions = Iterable[TopicPartition | tuple[str, int]]
    StartOffsets = ItemResults[TopicPartition, "ShareGroupOffset | None"]

_SHARE = "share"


class ShareGroupOffset(AdminValue):
    """The start offset of a share group in a partition: all records before it are delivered.

    `lag` counts the records that are not delivered for good; -1 if the broker does not know it.
    `leader_epoch` is of the leader that wrote the offset.
    """

    start_offset: int
    leader_epoch: int
    lag: int = -1


class ShareGroupAdmin(AdminPart):
    """Describes share groups; lists, changes and deletes their start offsets."""

    @in_turn
    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, GroupDescription]:
        """Return state, members and assignments of share groups.

        A group of another type has the error GroupIdNotFound, as an unknown group.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.share_group_describe import ShareGroupDescribeRequest

        wanted = arguments.names(group_ids, "describe_share_groups", "group_ids", what="group ids")
        coordinators = CoordinatorCalls(self._calls, timeout_ms)
        outcomes = coordinators.ask(
            wanted,
            ShareGroupDescribeRequest,
            lambda groups, _version: ShareGroupDescribeRequest(
                group_ids=groups, include_authorized_operations=include_authorized_operations
            ),
            _described,
        )
        results: ItemResults[str, GroupDescription] = ItemResults()
        for group, found in outcomes.items():
            if isinstance(found, KafkaError):
                results.failures[group] = found
            else:
                results.values[group] = _share_group(found, coordinators.coordinators[group])
        return results

    @in_turn
    def list_share_group_offsets(
        self,
        groups: Iterable[str] | Mapping[str, Partitions | None],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[str, StartOffsets]:
        """Return the start offsets of share groups.

        `groups` are group ids, or a dict with the partitions of each group (None for all). A named
        partition without a start offset has the value None.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.describe_share_group_offsets import (
            DescribeShareGroupOffsetsRequest,
            DescribeShareGroupOffsetsRequestGroup,
        )

        call = "list_share_group_offsets"
        ids = arguments.names(groups, call, "groups", what="group ids")
        wanted: dict[str, list[TopicPartition] | None] = dict.fromkeys(ids)
        for group, keys in groups.items() if hasattr(groups, "items") else ():
            if keys is not None:
                wanted[group] = arguments.partitions(keys, call, f"groups: {group}")

        def request_for(asked: list[str], _version: int) -> DescribeShareGroupOffsetsRequest:
            questions = [
                DescribeShareGroupOffsetsRequestGroup(
                    group_id=each, topics=_questions(wanted[each])
                )
                for each in asked
            ]
            return DescribeShareGroupOffsetsRequest(groups=questions)

        outcomes = CoordinatorCalls(self._calls, timeout_ms).ask(
            wanted, DescribeShareGroupOffsetsRequest, request_for, _start_offsets
        )
        return results_of(outcomes)

    @in_turn
    def alter_share_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        timeout_ms: int | None = None,
    ) -> ItemResults[TopicPartition, None]:
        """Set the start offsets of a share group without members; create the group if necessary.

        The offset -1 lets share.auto.offset.reset decide.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was changed.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.alter_share_group_offsets import (
            AlterShareGroupOffsetsRequest,
            AlterShareGroupOffsetsRequestPartition,
            AlterShareGroupOffsetsRequestTopic,
        )

        call = "alter_share_group_offsets"
        arguments.name(group_id, call, "group_id", what="a group's id")
        topics: dict[str, AlterShareGroupOffsetsRequestTopic] = {}
        for key, start in arguments.by_partition(offsets, call, "offsets", "offset").items():
            number = arguments.offset(start, call, f"offsets: {key}", lowest=-1)
            topic = topics.setdefault(
                key.topic, AlterShareGroupOffsetsRequestTopic(topic_name=key.topic)
            )
            topic.partitions.append(
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=key.partition, start_offset=number
                )
            )
        response = CoordinatorCalls(self._calls, timeout_ms).ask_one(
            group_id,
            AlterShareGroupOffsetsRequest,
            lambda _version: AlterShareGroupOffsetsRequest(
                group_id=group_id, topics=list(topics.values())
            ),
            lambda response: (response.error_code, response.error_message, response),
        )
        results: ItemResults[TopicPartition, None] = ItemResults()
        for answer in response.responses:
            for each in answer.partitions:
                key = TopicPartition(answer.topic_name, each.partition_index)
                results.put(key, None, each.error_code, each.error_message or str(key))
        return results

    @in_turn
    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, None]:
        """Delete the start offsets of topics; the share group must have no members.

        Raises:
            KafkaError: the group or its coordinator has an error; nothing was deleted.
        """
        from embedlog.client.admin.coordinators import CoordinatorCalls
        from wire.schemas.delete_share_group_offsets import (
            DeleteShareGroupOffsetsRequest,
            DeleteShareGroupOffsetsRequestTopic,
        )

        call = "delete_share_group_offsets"
        arguments.name(group_id, call, "group_id", what="a group's id")
        asked = [
            DeleteShareGroupOffsetsRequestTopic(topic_name=name)
            for name in arguments.names(topics, call, "topics")
        ]
        response = CoordinatorCalls(self._calls, timeout_ms).ask_one(
            group_id,
            DeleteShareGroupOffsetsRequest,
            lambda _version: DeleteShareGroupOffsetsRequest(group_id=group_id, topics=asked),
            lambda response: (response.error_code, response.error_message, response),
        )
        results: ItemResults[str, None] = ItemResults()
        for each in response.responses:
            text = each.error_message or f"topic {each.topic_name!r}"
            results.put(each.topic_name, None, each.error_code, text)
        return results


def _described(
    response: ShareGroupDescribeResponse, _groups: list[str]
) -> dict[str, Answer[DescribedGroup]]:
    return {each.group_id: (each.error_code, each.error_message, each) for each in response.groups}


def _share_group(described: DescribedGroup, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            each.member_id,
            None,
            each.client_id,
            each.client_host,
            assignment=sorted(
                TopicPartition(topic.topic_name, number)
                for topic in each.assignment.topic_partitions
                for number in topic.partitions
            ),
            rack=each.rack_id,
            member_epoch=each.member_epoch,
            subscribed_topics=list(each.subscribed_topic_names),
        )
        for each in described.members
    ]
    return GroupDescription(
        described.group_id,
        _SHARE,
        described.group_state,
        protocol_type=_SHARE,
        assignor=described.assignor_name,
        coordinator=coordinator,
        members=members,
        group_epoch=described.group_epoch,
        target_assignment_epoch=described.assignment_epoch,
        authorized_operations=operations(described.authorized_operations),
    )


def _questions(
    keys: list[TopicPartition] | None,
) -> list[DescribeShareGroupOffsetsRequestTopic] | None:
    if keys is None:
        return None
    from wire.schemas.describe_share_group_offsets import DescribeShareGroupOffsetsRequestTopic

    topics: dict[str, DescribeShareGroupOffsetsRequestTopic] = {}
    for name, number in keys:
        topic = topics.setdefault(name, DescribeShareGroupOffsetsRequestTopic(topic_name=name))
        topic.partitions.append(number)
    return list(topics.values())


def _start_offsets(
    response: DescribeShareGroupOffsetsResponse, _asked: list[str]
) -> dict[str, Answer[StartOffsets]]:
    return {
        each.group_id: (each.error_code, each.error_message, _starts(each))
        for each in response.groups
    }


def _starts(group: DescribeShareGroupOffsetsResponseGroup) -> StartOffsets:
    results: StartOffsets = ItemResults()
    for topic in group.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.topic_name, each.partition_index)
            found = (
                None
                if each.start_offset < 0
                else ShareGroupOffset(each.start_offset, each.leader_epoch, each.lag)
            )
            results.put(key, found, each.error_code, each.error_message or f"offset of {key}")
    return results
