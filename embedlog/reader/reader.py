"""`LogDirectoryReader`: reads a data directory, even while another process has it open.

    with embedlog.open_reader("data") as reader:
        for record in reader.partition("events", 0).records():
            print(record.offset, record.value)

Reading takes no lock and writes no file: it needs only the right to read, and does not disturb the
other process. `embedlog.storage.foreign` and `embedlog.storage.state_files.published_offset` tell
at which offset reading ends, and why reading is safe.
"""

from __future__ import annotations

from contextlib import suppress

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError, ConfigError, CorruptRecord, TimedOut, again
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.pending import Pending
from embedlog.storage import paths
from embedlog.storage.foreign.committed_batches import committed_batches, data_batches
from embedlog.storage.foreign.log import ForeignLog
from embedlog.storage.state_files.archived_offsets import publish_archived, withdraw_archived
from embedlog.storage.state_files.commit_file import commit_key
from embedlog.storage.state_files.retention_pins import RetentionPin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from _typeshed import StrPath

    from embedlog.reader.partition_range import PartitionRange
    from embedlog.storage.foreign.segment import Batch
    from wire.records.record import Record

READ_UNCOMMITTED = "read_uncommitted"
READ_COMMITTED = "read_committed"
_POLL_MS = 20
"""A waiting reader looks at the files this often."""
_NAME_SIZE_MAX = 64
_SNAPSHOT_ATTEMPTS = 100


def _name_of(archive: str) -> str:
    if not 0 < len(archive) <= _NAME_SIZE_MAX or not archive.replace("-", "a").isalnum():
        raise ConfigError(f"archive={archive!r}: expected at most 64 letters, digits and hyphens")
    return archive


def open_reader(path: StrPath) -> LogDirectoryReader:
    """Open the data directory at `path` for reading, whether a cluster has it open or not.

    >>> import embedlog, tempfile
    >>> with tempfile.TemporaryDirectory() as path, embedlog.open(path) as cluster:
    ...     with cluster.producer() as producer:
    ...         sent = producer.send("events", b"value", partition=0).result()
    ...     with embedlog.open_reader(path) as reader:
    ...         [bytes(record.value) for record in reader.partition("events", 0).records()]
    [b'value']

    Raises:
        ConfigError: `path` is no directory, or the directory of several brokers.
    """
    return LogDirectoryReader(path)


class LogDirectoryReader:
    """Reads a data directory. Only one thread at a time may use a `PartitionReader` of it."""

    def __init__(self, path: StrPath, *, runtime: Runtime | None = None) -> None:
        """See `open_reader`. `runtime` replaces clock and files: see `embedlog.testing`."""
        from embedlog.storage.directory.data_path import existing_directory

        self._runtime = runtime or real_runtime()
        self.path = existing_directory(self._runtime.files, path)
        self._is_closed = False

    def topics(self) -> list[str]:
        """Return the sorted names of all topics in the directory, internal topics included."""
        return sorted({topic for topic, _ in self._partitions()})

    def partitions(self, topic: str) -> list[int]:
        """Return the sorted partition numbers of a topic; empty for an unknown topic."""
        return [number for name, number in self._partitions() if name == topic]

    def partition(self, topic: str, number: int) -> PartitionReader:
        """Return a reader of a partition, with its present offsets.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            CorruptRecord: the log cannot be read at all.
        """
        self._check_open()
        return PartitionReader(self, TopicPartition(topic, number), self._runtime)

    def snapshot(
        self,
        partitions: Iterable[tuple[str, int]],
        *,
        known: Iterable[PartitionReader] = (),
        is_checked: bool = True,
    ) -> list[PartitionReader]:
        """Return a reader of each partition, as of one moment: all or none show a staged commit.

        The call refreshes and returns `known` readers, unless their topic was recreated. A known
        reader reads only new bytes; a new reader reads the whole last segment. Without `is_checked`
        a new reader reads only batch headers, and does not know `damage` inside batches.

        >>> import embedlog, tempfile
        >>> with tempfile.TemporaryDirectory() as path, embedlog.open(path) as cluster:
        ...     topic = cluster.create_topic("events", 2)
        ...     with embedlog.open_reader(path) as reader:
        ...         both = reader.snapshot([("events", 0), ("events", 1)])
        >>> [each.high_watermark for each in both]
        [0, 0]

        Raises:
            UnknownTopicOrPartition: a partition does not exist.
            CorruptRecord: a log cannot be read at all.
            TimedOut: commits came faster than the logs could be read.
        """
        self._check_open()
        wanted = [TopicPartition(*each) for each in partitions]
        files = self._runtime.files
        readers = {TopicPartition(each.topic, each.partition): each for each in known}
        for _ in range(_SNAPSHOT_ATTEMPTS):
            before = commit_key(files, self.path)
            found = [self._refreshed(each, readers.get(each), is_checked) for each in wanted]
            if commit_key(files, self.path) == before:
                return found
        raise TimedOut(f"{self.path}: no moment between two commits to read {len(wanted)} logs")

    def _refreshed(
        self, key: TopicPartition, known: PartitionReader | None, is_checked: bool
    ) -> PartitionReader:
        if known is not None:
            with suppress(errors.UnknownTopicOrPartition):
                known.refresh()
                return known
        return PartitionReader(self, key, self._runtime, is_checked=is_checked)

    def pin(
        self, offsets: Mapping[tuple[str, int], int], *, timeout_ms: int = 600_000
    ) -> RetentionPin:
        """Keep retention by size and age from deleting records from these offsets on.

        The pin ends after `timeout_ms`. Renew it to read longer, and release it when done; `with`
        releases it. DeleteRecords, compaction and topic deletion ignore the pin: see
        `embedlog.storage.state_files.retention_pins`.

        >>> import embedlog, tempfile
        >>> with tempfile.TemporaryDirectory() as path, embedlog.open(path) as cluster:
        ...     topic = cluster.create_topic("events", 1)
        ...     with embedlog.open_reader(path) as reader, reader.pin({("events", 0): 0}) as pin:
        ...         pin.renew()

        Raises:
            ConfigError: `timeout_ms` is not between 1 and 24 hours.
            OSError: the directory cannot be written.
        """
        self._check_open()
        return RetentionPin(self._runtime, self.path, offsets, timeout_ms)

    def publish_archived(
        self,
        archive: str,
        offsets: Mapping[tuple[str, int], int],
        *,
        topic_ids: Mapping[str, str] | None = None,
    ) -> None:
        """Publish that `archive` has all records below these offsets, by (topic, partition).

        In topics with `embedlog.retention.archived=true`, retention by size and age waits for the
        archive: see `embedlog.storage.state_files.archived_offsets`. The call replaces the earlier
        offsets of the archive, and returns after a sync. `topic_ids` names the archived topics by
        id, so that a recreated topic does not count as archived. Without `topic_ids` the present
        topics count.

        Raises:
            ConfigError: `archive` is not 1 to 64 letters, digits and hyphens.
            UnknownTopicOrPartition: a partition does not exist.
            OSError: the directory cannot be written.
        """
        known = set(self._partitions())
        keys = {TopicPartition(*each): offset for each, offset in offsets.items()}
        for key in keys:
            if key not in known:
                raise errors.UnknownTopicOrPartition(f"{key} is not in {self.path}")
        publish_archived(self._runtime.files, self.path, _name_of(archive), keys, topic_ids or {})

    def withdraw_archived(self, archive: str) -> None:
        """Make retention ignore `archive` from here on.

        Raises:
            ConfigError, OSError: see `publish_archived`.
        """
        self._check_open()
        withdraw_archived(self._runtime.files, self.path, _name_of(archive))

    def close(self) -> None:
        """Make further calls fail. A second call does nothing."""
        self._is_closed = True

    def _partitions(self) -> list[TopicPartition]:
        self._check_open()
        found = map(paths.parse_log_directory, self._runtime.files.list(self.path))
        return sorted(each for each in found if each is not None)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the reader was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LogDirectoryReader of {self.path!r}>"


class PartitionReader:
    """One partition. Its offsets are as of its construction or the last `refresh`."""

    def __init__(
        self,
        owner: LogDirectoryReader,
        topic_partition: TopicPartition,
        runtime: Runtime,
        *,
        is_checked: bool = True,
    ) -> None:
        self._owner = owner
        self._runtime = runtime
        self._log = ForeignLog(runtime.files, owner.path, topic_partition, is_checked=is_checked)
        self.topic, self.partition = topic_partition

    @property
    def log_start_offset(self) -> int:
        """The first readable offset."""
        return self._log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The offset after the last published record."""
        return self._log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset of the first published record of an open transaction; `high_watermark` if
        there is none.
        """
        return self._log.last_stable_offset

    @property
    def damage(self) -> CorruptRecord | None:
        """The damage at `high_watermark`, which hides the later records; None without damage."""
        return self._log.damage

    def refresh(self) -> None:
        """Read the newest published state from the files.

        Raises:
            UnknownTopicOrPartition: the topic was deleted or recreated.
        """
        self._owner._check_open()
        self._log.refresh()

    def batches(
        self, offset: int | None = None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> Iterator[Batch]:
        """Iterate over the record batches from `offset` (None: the log's start) to the end.

        The first batch contains `offset`, and may begin before it. The end is as of the last
        `refresh`. "read_committed" leaves out aborted transactions and ends before the first open
        transaction. A batch has its stored bytes (`buffer`), perhaps compressed, and `records()`
        and `columns()`. Checksums were verified.

        Raises:
            OffsetOutOfRange: `offset` is outside the log, or was deleted before it was read.
            CorruptRecord: the next batch is damaged; the error names the file and the position.
        """
        start = self.log_start_offset if offset is None else offset
        if isolation_level == READ_COMMITTED:
            return committed_batches(self._log, start, self.last_stable_offset)
        if isolation_level != READ_UNCOMMITTED:
            raise ConfigError(f"isolation_level {isolation_level!r}")
        return data_batches(self._log, start, self.high_watermark)

    def stored_batches(self) -> Iterator[Batch]:
        """Iterate over every stored batch up to the high watermark, including control batches."""
        return self._log.batches(self.log_start_offset, self.high_watermark)

    def records(
        self, offset: int | None = None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> Iterator[Record]:
        """Iterate over the records from `offset` on: see `batches`."""
        start = self.log_start_offset if offset is None else offset
        for batch in self.batches(start, isolation_level=isolation_level):
            for record in batch.records():
                if record.offset >= start:
                    yield record

    def range(
        self, start: int, end: int, *, isolation_level: str = READ_UNCOMMITTED
    ) -> PartitionRange:
        """Return the offsets [start, end) for reading in another process. It can be pickled.

        Requires: `end` is not above the high watermark.
        """
        from embedlog.reader.partition_range import PartitionRange

        return PartitionRange(
            self._owner.path,
            self.topic,
            self.partition,
            start,
            end,
            isolation_level,
            self.high_watermark,
            self._log.topic_id,
            self._log.mark_before(start),
        )

    def cuts(self, start: int, end: int, size_max: int) -> list[int]:
        """Return offsets that cut (start, end) into parts of about `size_max` stored bytes.

        Each cut lies between two batches. Without an offset index there are fewer cuts.
        """
        return self._log.cuts(start, end, size_max)

    def segment_paths(self) -> list[tuple[int, str]]:
        """Return (base offset, file) of every segment, in order."""
        return self._log.segment_paths()

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """Return the offset of the first record whose timestamp (ms) is at least `timestamp`.

        None if no record has such a timestamp.
        """
        return self._log.offset_for_timestamp(timestamp)

    def wait(
        self, offset: int, timeout_ms: int | None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> bool:
        """Wait at most `timeout_ms` (None: for ever) for `offset`; return whether it is readable.

        The reader looks at the files every 20 ms.

        Raises:
            UnknownTopicOrPartition: the topic was deleted or recreated.
            CorruptRecord: the records at `offset` are damaged.
        """
        scheduler, clock = self._runtime.scheduler, self._runtime.clock
        deadline_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        while True:
            self.refresh()
            is_committed = isolation_level == READ_COMMITTED
            if offset < (self.last_stable_offset if is_committed else self.high_watermark):
                return True
            if self._log.damage is not None:
                raise again(self._log.damage)
            remaining_ms = _POLL_MS
            if deadline_ms is not None:
                remaining_ms = min(_POLL_MS, deadline_ms - clock.monotonic_ms())
            if remaining_ms <= 0:
                return False
            scheduler.wait(Pending(), remaining_ms)

    def follow(
        self,
        offset: int | None = None,
        *,
        timeout_ms: int | None = None,
        isolation_level: str = READ_UNCOMMITTED,
    ) -> Iterator[Record]:
        """Iterate over the records from `offset` on (None: the log's start), and wait for more.

        The iteration ends after `timeout_ms` without a record (None: never). If retention deletes
        records before they are read, it continues at the log start offset.
        """
        position = self.log_start_offset if offset is None else offset
        while self.wait(position, timeout_ms, isolation_level=isolation_level):
            end = self.high_watermark
            if isolation_level == READ_COMMITTED:
                end = self.last_stable_offset
            try:
                for record in self.records(position, isolation_level=isolation_level):
                    yield record
                    position = record.offset + 1
                position = max(position, end)
            except errors.OffsetOutOfRange:
                self.refresh()
                if position >= self.log_start_offset:
                    raise
                position = self.log_start_offset

    def __repr__(self) -> str:
        return (
            f"<PartitionReader of {self.topic}-{self.partition}, offsets "
            f"{self.log_start_offset} to {self.high_watermark}>"
        )
