"""DescribeShareGroupOffsets: start offsets and lags of share partitions (KIP-1226).

    lag = end offset - start offset - number of records that are done behind the start offset

It is -1 as long as nothing was acknowledged. No group is looked up: the share coordinators know the
offsets, the leaders of the partitions the end offsets. So any broker can answer.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.answers import then
from embedlog.errors import EmbedlogError
from embedlog.runtime.pending import Pending, completed
from wire.error_codes import ErrorCode
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.share.state_client import Place, ShareStateClient, ShareSummary

    Named = tuple[str, int]
    """Topic name and partition number."""
    EndOffset = tuple[int, int]
    """Error code and high watermark of a partition."""
    EndOffsets = Callable[[Sequence[Named]], Pending[Mapping[Named, EndOffset]]]
    """Asks the leaders of partitions; the answer has an entry for each of them."""
    Wanted = Sequence[tuple[str, Sequence[int]]]
    Topics = list[DescribeShareGroupOffsetsResponseTopic]

UNKNOWN_OFFSET = -1


def describe_offsets(
    group_id: str,
    wanted: Wanted,
    *,
    metadata: MetadataImage,
    state: ShareStateClient,
    end_offsets: EndOffsets,
) -> Pending[Topics]:
    """Return the start offsets of partitions; -1 for partitions without state.

    The pending fails with UnknownServerError where Kafka answers so: for the empty group, a topic
    without partitions, or a negative partition.
    """
    by_name = metadata.topics_by_name
    # As in Kafka, a repeated partition of a known topic has one answer.
    wanted = [(name, list(dict.fromkeys(n)) if name in by_name else n) for name, n in wanted]
    places: dict[Place, Named] = {}
    for name, numbers in wanted:
        topic = by_name.get(name)
        if topic is None:
            continue
        if not group_id or not numbers or min(numbers) < 0:
            return _refused()
        places.update(
            {(topic.topic_id, n): (name, n) for n in numbers if n < len(topic.partitions)}
        )
    if not places:
        return completed(_topics(wanted, metadata, {}, {}))

    def with_summaries(found: Mapping[Place, ShareSummary]) -> Pending[Topics]:
        begun = [place for place, each in found.items() if _has_lag(each) and place in places]
        if not begun:
            return completed(_topics(wanted, metadata, found, {}))
        ends = end_offsets([places[place] for place in begun])
        return then(ends, lambda known: _topics(wanted, metadata, found, known))

    return then(_or_nothing(state.summaries(group_id, places)), with_summaries)


def _refused() -> Pending[Topics]:
    pending: Pending[Topics] = Pending()
    pending.fail(errors.UnknownServerError(SERVER_ERROR))
    return pending


SERVER_ERROR = "The server experienced an unexpected error when processing the request."


def _or_nothing(pending: Pending[dict[Place, ShareSummary]]) -> Pending[dict[Place, ShareSummary]]:
    """Return an empty answer in place of an error, as Kafka does."""
    answer: Pending[dict[Place, ShareSummary]] = Pending()

    def settled(done: Pending[dict[Place, ShareSummary]]) -> None:
        if isinstance(done.error(), EmbedlogError):
            answer.complete({})
        else:
            answer.follow(done)

    pending.add_callback(settled)
    return answer


def _has_lag(summary: ShareSummary) -> bool:
    return (
        summary.error_code == ErrorCode.NONE
        and summary.start_offset != UNKNOWN_OFFSET
        and summary.delivery_complete_count != UNKNOWN_OFFSET
    )


def _topics(
    wanted: Wanted,
    metadata: MetadataImage,
    found: Mapping[Place, ShareSummary],
    ends: Mapping[Named, EndOffset],
) -> Topics:
    topics = []
    for name, numbers in wanted:
        topic = metadata.topics_by_name.get(name)
        topic_id = bytes(16) if topic is None else topic.topic_id
        partitions = [
            _partition(number, found.get((topic_id, number)), ends.get((name, number)))
            for number in numbers
        ]
        topics.append(
            DescribeShareGroupOffsetsResponseTopic(
                topic_name=name, topic_id=topic_id, partitions=partitions
            )
        )
    return topics


def _partition(
    number: int, summary: ShareSummary | None, end: EndOffset | None
) -> DescribeShareGroupOffsetsResponsePartition:
    shown = DescribeShareGroupOffsetsResponsePartition(
        partition_index=number, start_offset=UNKNOWN_OFFSET, lag=UNKNOWN_OFFSET
    )
    if summary is None or summary.error_code:
        return shown
    shown.start_offset = summary.start_offset
    shown.leader_epoch = summary.leader_epoch
    if end is not None:
        shown.error_code, end_offset = end
        if not shown.error_code:
            shown.lag = end_offset - summary.start_offset - summary.delivery_complete_count
    return shown
