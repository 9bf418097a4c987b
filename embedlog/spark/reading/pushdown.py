"""Filters that Spark pushes down, which exclude partitions, offsets and old segments from a read.

Filters of topic, partition and offset against a constant are handled exactly: Spark does not apply
them again. Timestamps are not in order within a log: a filter of timestamps can only skip
old records, and Spark applies it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from embedlog.common import TopicPartition
from embedlog.spark.access.log_access import LogAccess
from embedlog.spark.reading.batch_reader import BatchReader

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER_NULL = ("topic", "partition", "offset", "timestampType")
_MAX = 1 << 62


@dataclass(slots=True)
class Pruning:
    """The filters of one read, combined."""

    topics: set[str] | None = None
    numbers: set[int] | None = None
    start: int = 0
    end: int = _MAX
    since_ms: int | None = None

    def take(self, column: str, operation: type[Filter], values: set[Any]) -> bool:
        """Add a comparison; True if it is handled exactly."""
        if operation is IsNotNull:
            return column in _NEVER_NULL
        if None in values:
            return False
        if column == "topic" and operation in {EqualTo, EqualNullSafe, In}:
            self.topics = values if self.topics is None else self.topics & values
            return True
        if column == "partition" and operation in {EqualTo, EqualNullSafe, In}:
            self.numbers = values if self.numbers is None else self.numbers & values
            return True
        if column == "offset":
            return self._take_offset(operation, values)
        if column == "timestamp" and operation in {GreaterThan, GreaterThanOrEqual, EqualTo}:
            (stamp,) = values
            since_ms = int((stamp - _EPOCH).total_seconds() * 1000)
            self.since_ms = max(since_ms, self.since_ms or since_ms)
        return False

    def _take_offset(self, operation: type[Filter], values: set[int]) -> bool:
        low, high = min(values, default=0), max(values, default=-1)
        if operation in {EqualTo, EqualNullSafe}:
            self.start, self.end = max(self.start, low), min(self.end, high + 1)
        elif operation is GreaterThan:
            self.start = max(self.start, low + 1)
        elif operation is GreaterThanOrEqual:
            self.start = max(self.start, low)
        elif operation is LessThan:
            self.end = min(self.end, high)
        elif operation is LessThanOrEqual:
            self.end = min(self.end, high + 1)
        elif operation is In:
            self.start, self.end = max(self.start, low), min(self.end, high + 1)
            return False  # the range holds offsets besides these values
        else:
            return False
        return True

    def ranges(
        self, access: LogAccess, ranges: dict[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the part of `ranges` that the filters leave."""
        left = {}
        for key, (start, end) in ranges.items():
            if self.topics is not None and key.topic not in self.topics:
                continue
            if self.numbers is not None and key.partition not in self.numbers:
                continue
            start, end = max(start, self.start), min(end, self.end)
            if self.since_ms is not None and start < end:
                # Begin at the first record at or after `since_ms`: all before it are older.
                first = access.offset_for_timestamp(key, self.since_ms)
                start = end if first is None else max(start, first)
            if start < end:
                left[key] = (start, end)
        return left


class FilteringBatchReader(BatchReader):
    """A batch reader that takes filters, for `pushdown` only: Spark's own setting must allow it."""

    _pruning: Pruning | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take filters; return the ones that Spark has to apply."""
        pruning = self._pruning = Pruning()
        return [each for each in filters if not self._take(pruning, each)]

    def _take(self, pruning: Pruning, pushed: Any) -> bool:
        column = pushed.attribute
        if len(column) != 1:
            return False
        if isinstance(pushed, IsNotNull):
            return pruning.take(column[0], IsNotNull, set())
        if isinstance(pushed, In):
            return pruning.take(column[0], In, set(pushed.value))
        comparisons = (
            EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual,
        )  # fmt: skip
        if isinstance(pushed, comparisons):
            return pruning.take(column[0], type(pushed), {pushed.value})
        return False

    def _chosen(
        self, access: LogAccess, ranges: dict[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        return ranges if self._pruning is None else self._pruning.ranges(access, ranges)
