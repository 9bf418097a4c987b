"""What a produce response says of each partition."""

from __future__ import annotations

from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.errors import KafkaError
    from wire.schemas.produce import PartitionProduceResponse, ProduceResponse


def by_partition(
    response: ProduceResponse, names_by_id: Mapping[bytes, str]
) -> dict[tuple[str, int], PartitionProduceResponse]:
    """The answers by (topic, partition); newer versions name topics by their ids only."""
    return {
        (topic.name or names_by_id.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }


def error_of(answer: PartitionProduceResponse) -> KafkaError:
    """The error that refuses a batch, with what it tells of records and of the log."""
    error = error_for(answer.error_code, answer.error_message)
    error.record_errors = tuple(
        [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    )
    error.log_start_offset = answer.log_start_offset
    return error
