"""What a produce response says of each partition."""

from __future__ import annotations

from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.errors import KafkaError
    from wire.schemas.produce import NodeEndpoint, PartitionProduceResponse, ProduceResponse


def by_partition(
    response: ProduceResponse, names_by_id: Mapping[bytes, str]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """The answers by (topic, partition); newer versions name topics by their ids only."""
    return {
        (topic.name or names_by_id.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }


def leaders_in(
    response: ProduceResponse, answers: Mapping[tuple[str, int], PartitionProduceResponse]
) -> tuple[dict[tuple[str, int], tuple[int, int]], list[NodeEndpoint]]:
    """Who leads the partitions now, as (node id, epoch), and where those nodes are (KIP-951)."""
    leaders = {
        key: (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
        for key, answer in answers.items()
        if answer.current_leader.leader_id >= 0 and answer.current_leader.leader_epoch >= 0
    }
    return leaders, response.node_endpoints


def error_of(answer: PartitionProduceResponse) -> KafkaError:
    """The error that refuses a batch, with what it tells of records and of the log."""
    error = error_for(answer.error_code, answer.error_message)
    error.record_errors = tuple(
        [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    )
    error.log_start_offset = answer.log_start_offset
    return error
