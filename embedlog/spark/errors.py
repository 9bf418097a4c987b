"""Wrong options and lost data, in the words of Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Iterable

from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError


class IllegalArgument(EmbedlogError, ValueError):
    """An option is missing, has an unknown value, or contradicts another option."""


class DataLoss(EmbedlogError):
    """Records of the read no longer exist, and failOnDataLoss is true."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "Some data may have been lost because they are not available in Kafka any more;\n"
            "either the data was aged out by Kafka or the topic may have been deleted before all "
            "the data in the\ntopic was processed.\n"
            "If you don't want your streaming query to fail on such cases, set the source option "
            f"failOnDataLoss to false.\nReason: {reason}"
        )
        self.reason = reason


def could_not_read(key: TopicPartition, start: int, end: int, group: str) -> DataLoss:
    """Return the error for offsets [start, end) that the log does not have."""
    return DataLoss(
        f"Could not read records in offset [{start}, {end}) for topic partition {key}\n"
        f"with consumer group {group}."
    )


def partitions_deleted(keys: Iterable[TopicPartition]) -> DataLoss:
    """Return the error for partitions of earlier batches that no longer exist."""
    names = ", ".join(map(str, sorted(keys)))
    return DataLoss(f"Partitions Set({names}) have been deleted.")


def offset_changed(key: TopicPartition, before: int, after: int) -> DataLoss:
    """Return the error for a partition that ends before the offset that the query has reached."""
    return DataLoss(
        f"Partition {key} offset was changed from {before} to {after}.\n"
        "This could be either 1) a user error that the start offset is set beyond available offset "
        "when starting query, or 2) the kafka topic-partition is deleted and re-created."
    )


def topic_made_anew(topic: str) -> DataLoss:
    """Return the error for a topic that was deleted and created since the query's last batch."""
    return DataLoss(
        f"Topic {topic} was deleted and re-created: its id is not the one in the checkpoint. The "
        "offsets of the query belong to the former topic. Use another checkpoint to read the new "
        "one."
    )


def added_late(key: TopicPartition, start: int) -> DataLoss:
    """Return the error for a new partition whose first records the query cannot read any more."""
    return DataLoss(f"Added partition {key} starts from {start} instead of 0.")
