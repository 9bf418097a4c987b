"""A streaming read: which offsets each micro-batch has.

One of Spark's processes keeps this object for the whole query. Spark asks for the initial offset
more than once, and again after a restart whose first batch was never committed. If "latest" were
resolved again each time, the records written in between would be in no batch. So the initial offset
is resolved once. The first batch of a query that begins at "latest", at a time or at a group's
offsets is empty: it ends where it begins, which pins the start in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

import embedlog
from embedlog.common import TopicPartition
from embedlog.errors import DirectoryLocked
from embedlog.runtime import real_runtime
from embedlog.spark.access.log_access import LogAccess, open_access
from embedlog.spark.errors import (
    IllegalArgument,
    added_late,
    offset_changed,
    partitions_deleted,
    topic_made_anew,
)
from embedlog.spark.offsets import Positions, from_json, id_number, id_numbers, limited, to_json
from embedlog.spark.options import Offsets, SourceOptions, Word
from embedlog.spark.reading.planning import available, plan, starting_positions, subscribed
from embedlog.spark.reading.slices import read_slice

STREAM_GROUP_PREFIX = "spark-kafka-source"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The micro-batches of one query; see the module."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._group = options.group_id or options.group_id_prefix or STREAM_GROUP_PREFIX
        self._access: LogAccess | None = None
        self._initial: Positions | None = None
        self._initial_ids: dict[str, bytes] = {}
        self._is_pinned = False
        """Whether `latestOffset` has planned the first batch, which pins the initial offset."""
        self._target: tuple[Positions, dict[str, bytes]] | None = None
        """Where a query with the trigger AvailableNow ends, and the ids of its topics."""
        self._last_trigger_ms: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy without the log: they only read slices.
        return {**self.__dict__, "_access": None}

    # Planning

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        if self._initial is None:
            access = self._log()
            wanted = subscribed(access, self._options.subscription)
            self._initial_ids = access.topic_ids(wanted)
            bounds = access.bounds(wanted)
            self._initial = starting_positions(access, self._options, bounds, wanted)
        return to_json(self._initial, self._initial_ids)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        rows_max = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End the query where the log ends at this moment."""
        self._target = self._ends_and_ids()

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """Return where the next batch ends.

        Raises:
            DataLoss: a partition ends before `start`, or a topic was made anew, and losses are not
                tolerated.
        """
        begin = from_json(start)
        if not self._is_pinned:
            self._is_pinned = True
            if self._moves and self._initial is not None and begin == self._initial:
                return to_json(begin, self._initial_ids)
        ends, ids = self._ends_and_ids() if self._target is None else self._target
        begin.update(self._appeared(begin, ends))
        # Only a recreated partition may end before `begin`. Leave out partitions that no longer
        # exist: this difference makes Spark plan a batch, and `partitions` reports them.
        ends = {key: max(end, begin.get(key, end)) for key, end in ends.items()} | self._cut(begin)
        self._check_ids(start, ids)
        if self._waits_for_more(begin, ends):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = limited(begin, ends, limit.max_rows)
        return to_json(ends, ids)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where the log ends, for `lastProgress`."""
        return to_json(self._ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the slices of a batch.

        Raises:
            DataLoss: a part of the batch no longer exists, and losses are not tolerated.
        """
        begin, until = from_json(start), from_json(end)
        access = self._log()
        bounds = access.bounds(until)
        ids = access.topic_ids(bounds)
        begin.update(self._first_offsets(set(until) - set(begin), bounds))
        gone = sorted(set(begin) - set(bounds))
        if gone and self._options.fail_on_data_loss:
            raise partitions_deleted(gone)
        ranges = {}
        for key, last in until.items():
            if key not in bounds:
                continue
            first = begin[key]
            if last < first and self._options.fail_on_data_loss:
                raise offset_changed(key, first, last)
        for offsets in (start, end):
            self._check_ids(offsets, ids)
        for key, last in until.items():
            if key not in bounds:
                continue
            first = begin[key]
            found = available(
                self._options, key, (first, max(first, last)), bounds[key], self._group
            )
            if found[0] < found[1]:
                ranges[key] = found
        access.pin({key: start for key, (start, _) in ranges.items()})
        return [InputPartition(part) for part in plan(access, self._options, ranges)]

    def commit(self, end: dict[str, Any]) -> None:
        """With `commitOffsets`, commit the end of a finished batch to the group."""
        if self._options.commit_offsets:
            commit_offsets(self._options, from_json(end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is None:
            return
        yield from read_slice(partition.value, self._schema, self._options, self._group)

    @property
    def _moves(self) -> bool:
        """Whether resolving the initial offset again could give another offset.

        False for "earliest": this offset moves only over removed records, which nobody can read.
        """
        starting = self._options.starting
        return not isinstance(starting, Offsets) and starting != Word("earliest")

    def _log(self) -> LogAccess:
        if self._access is None:
            self._access = open_access(self._options)
        return self._access

    def _check_ids(self, offsets: dict[str, Any], ids: Mapping[str, bytes]) -> None:
        """Raise DataLoss if a topic of `offsets` was made anew, and losses are not tolerated.

        Offsets of the connector, and of versions that kept no ids, are taken as they are.
        """
        for topic, number in id_numbers(offsets).items():
            known = ids.get(topic)
            if known is not None and id_number(known) != number and self._options.fail_on_data_loss:
                raise topic_made_anew(topic)

    def _ends(self) -> Positions:
        return self._ends_and_ids()[0]

    def _ends_and_ids(self) -> tuple[Positions, dict[str, bytes]]:
        access = self._log()
        wanted = subscribed(access, self._options.subscription)
        ids = access.topic_ids(wanted)
        return {key: end for key, (_, end) in access.bounds(wanted).items()}, ids

    def _cut(self, begin: Positions) -> Positions:
        """Return the ends of partitions that end before `begin`: their topics were recreated.

        Raises:
            DataLoss: there are such partitions, and losses are not tolerated.
        """
        cut = {key: end for key, end in self._ends().items() if end < begin.get(key, end)}
        if cut and self._options.fail_on_data_loss:
            key = min(cut)
            raise offset_changed(key, begin[key], cut[key])
        return cut

    def _appeared(self, begin: Positions, ends: Positions) -> Positions:
        new = set(ends) - set(begin)
        return self._first_offsets(new, self._log().bounds(new)) if new else {}

    def _first_offsets(
        self, new: set[TopicPartition], bounds: dict[TopicPartition, tuple[int, int]]
    ) -> Positions:
        first = {key: bounds[key][0] for key in new if key in bounds}
        late = {key: offset for key, offset in first.items() if offset > 0}
        if late and self._options.fail_on_data_loss:
            raise added_late(*min(late.items()))
        return first

    def _waits_for_more(self, begin: Positions, ends: Positions) -> bool:
        """Whether `minOffsetsPerTrigger` is not reached and `maxTriggerDelay` has not passed."""
        count_min = self._options.min_offsets_per_trigger
        if count_min is None or self._target is not None:
            return False
        now_ms = real_runtime().clock.monotonic_ms()
        last = self._last_trigger_ms
        count = sum(ends[key] - begin[key] for key in ends)
        if (
            last is None
            or count >= count_min
            or now_ms - last >= self._options.max_trigger_delay_ms
        ):
            self._last_trigger_ms = now_ms
            return False
        return True


def commit_offsets(options: SourceOptions, offsets: Mapping[TopicPartition, int]) -> None:
    """Store `offsets` for `kafka.group.id`: at `kafka.bootstrap.servers`, or in the directory.

    If another process has the directory open, its listener's address is needed.

    Raises:
        IllegalArgument: no group is named, or the directory is in use and no address is given.
        KafkaError: the group has active members, which own its offsets.
    """
    group = options.group_id
    if group is None:
        raise IllegalArgument("commitOffsets needs the option kafka.group.id")
    if options.bootstrap_servers is not None:
        with embedlog.Admin(options.bootstrap_servers) as admin:
            admin.alter_group_offsets(group, offsets).check()
        return
    assert options.path is not None, "the options were checked"
    try:
        cluster = embedlog.open(options.path)
    except DirectoryLocked as error:
        raise IllegalArgument(
            f"commitOffsets: {options.path} is open in another process; name its listener with "
            f"kafka.bootstrap.servers ({error})"
        ) from error
    with cluster, cluster.admin() as admin:
        admin.alter_group_offsets(group, offsets).check()
