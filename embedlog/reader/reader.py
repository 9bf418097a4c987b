"""Reading a data directory that another process owns, or nobody: what `open_reader` returns.

    with embedlog.open_reader("data") as reader:
        for record in reader.partition("events", 0).records():
            print(record.offset, record.value)

No lock is taken and no file is written, so it needs the right to read and nothing else, and the
owner does not notice. How far it reads, and why that is safe: `embedlog.storage.foreign`
and `embedlog.storage.state_files.published_offset`.
"""

from __future__ import annotations

from contextlib import suppress

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ClosedError, ConfigError, TimedOut
from embedlog.runtime import real_runtime
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
    from types import TracebackType
    from typing import Self

    from _typeshed import StrPath

    from embedlog.errors import CorruptRecord
    from embedlog.reader.partition_range import PartitionRange
    from embedlog.runtime import Runtime
    from embedlog.storage.foreign.segment import Batch
    from wire.records.record import Record

READ_UNCOMMITTED = "read_uncommitted"
READ_COMMITTED = "read_committed"
_POLL_MS = 20
_NAME_SIZE_MAX = 64
"""How often a reader that waits looks at the files."""
_SNAPSHOT_ATTEMPTS = 100


def _name_of(archive: str) -> str:
    if not 0 < len(archive) <= _NAME_SIZE_MAX or not archive.replace("-", "a").isalnum():
        raise ConfigError(f"archive={archive!r}: expected at most 64 letters, digits and hyphens")
    return archive


def open_reader(path: StrPath) -> LogDirectoryReader:
    """Open the data directory at `path` to read it, whether a cluster has it open or not.

    >>> import embedlog, tempfile
    >>> with tempfile.TemporaryDirectory() as path, embedlog.open(path) as cluster:
    ...     with cluster.producer() as producer:
    ...         sent = producer.send("events", b"value", partition=0).result()
    ...     with embedlog.open_reader(path) as reader:
    ...         [bytes(record.value) for record in reader.partition("events", 0).records()]
    [b'value']

    Raises:
        ConfigError: `path` is not a directory, or that of several brokers.
    """
    return LogDirectoryReader(path)


class LogDirectoryReader:
    """A data directory, read-only. Its partitions may be used by one thread each."""

    def __init__(self, path: StrPath, *, runtime: Runtime | None = None) -> None:
        """See `open_reader`; `runtime` replaces clock and files: see `embedlog.testing`."""
        from embedlog.storage.directory.data_path import existing_directory

        self._runtime = runtime or real_runtime()
        self.path = existing_directory(self._runtime.files, path)
        self._is_closed = False

    def topics(self) -> list[str]:
        """The names of the topics that have a partition here, internal ones too, sorted."""
        return sorted({topic for topic, _ in self._partitions()})

    def partitions(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, sorted; none of a topic that is not there."""
        return [number for name, number in self._partitions() if name == topic]

    def partition(self, topic: str, number: int) -> PartitionReader:
        """A partition, as it is at the moment.

        Raises:
            UnknownTopicOrPartition: there is no such partition.
            CorruptRecord: it cannot be read at all.
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
        """Some partitions as of one moment: each commit of staged files is in all of them or none.

        Readers that are `known` are refreshed and given again, unless their topic was made anew:
        a new one reads the last segment from its begin, those only what has come since. Without
        `is_checked` a new one reads but the heads of batches there, and `damage` inside is not
        known before somebody reads it.

        >>> import embedlog, tempfile
        >>> with tempfile.TemporaryDirectory() as path, embedlog.open(path) as cluster:
        ...     topic = cluster.create_topic("events", 2)
        ...     with embedlog.open_reader(path) as reader:
        ...         both = reader.snapshot([("events", 0), ("events", 1)])
        >>> [each.high_watermark for each in both]
        [0, 0]

        Raises:
            UnknownTopicOrPartition: one of them is not there.
            CorruptRecord: one of them cannot be read at all.
            TimedOut: commits came faster than the partitions could be looked at.
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
        raise TimedOut(f"{self.path}: no moment between two commits to look at {len(wanted)} logs")

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
        """Let retention by size and age keep partitions from these offsets on, for `timeout_ms`.

        Renew it to read longer, release it when all is read; `with` does. DeleteRecords, compaction
        and the deletion of topics go on: see `embedlog.storage.state_files.retention_pins`.

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
        """Say that `archive` has all records below these offsets, by (topic, partition).

        Retention by size and age waits for it, of topics with `embedlog.retention.archived=true`:
        see `embedlog.storage.state_files.archived_offsets`. It replaces what the archive has said
        before, and is synced when this returns. `topic_ids` are those of the topics that were
        archived: of one that is made anew meanwhile nothing is archived. Without them the topics
        are those that are there at this moment.

        Raises:
            ConfigError: `archive` is no name of letters, digits and hyphens, at most 64.
            UnknownTopicOrPartition: there is no such partition.
            OSError: the directory cannot be written.
        """
        known = set(self._partitions())
        keys = {TopicPartition(*each): offset for each, offset in offsets.items()}
        for key in keys:
            if key not in known:
                raise errors.UnknownTopicOrPartition(f"{key} is not in {self.path}")
        publish_archived(self._runtime.files, self.path, _name_of(archive), keys, topic_ids or {})

    def withdraw_archived(self, archive: str) -> None:
        """Let `archive` count no more for retention. Nothing happens when it never did.

        Raises:
            ConfigError, OSError: as `publish_archived`.
        """
        self._check_open()
        withdraw_archived(self._runtime.files, self.path, _name_of(archive))

    def close(self) -> None:
        """Refuse calls from here on. A second call does nothing."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LogDirectoryReader of {self.path!r}>"


class PartitionReader:
    """One partition. What it says of offsets is of its making, or of the last `refresh`."""

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
        """The first offset that can be read."""
        return self._log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The end of what is published."""
        return self._log.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The end of what is published and of no transaction that is still open."""
        return self._log.last_stable_offset

    @property
    def damage(self) -> CorruptRecord | None:
        """Why nothing at the high watermark or behind it can be read, though there is more."""
        return self._log.damage

    def refresh(self) -> None:
        """See what the owner has done since.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
        """
        self._owner._check_open()
        self._log.refresh()

    def batches(
        self, offset: int | None = None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> Iterator[Batch]:
        """Iterate over the record batches from `offset` (None: the log's start) to the end.

        The first one holds `offset`, and may begin before it. The end is of the last `refresh`.
        With "read_committed" batches of aborted transactions are left out, and it ends before the
        first open one. Batches are bytes as they are stored (`buffer`), compressed or not, with
        `records()` and `columns()`; their checksums were looked at.

        Raises:
            OffsetOutOfRange: `offset` is outside the log, or was removed before it was read.
            CorruptRecord: the next batch is damaged; it names the file and the position.
        """
        start = self.log_start_offset if offset is None else offset
        if isolation_level == READ_COMMITTED:
            return committed_batches(self._log, start, self.last_stable_offset)
        if isolation_level != READ_UNCOMMITTED:
            raise ConfigError(f"isolation_level {isolation_level!r}")
        return data_batches(self._log, start, self.high_watermark)

    def stored_batches(self) -> Iterator[Batch]:
        """Every batch up to the high watermark as it is stored, control batches too."""
        return self._log.batches(self.log_start_offset, self.high_watermark)

    def records(
        self, offset: int | None = None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> Iterator[Record]:
        """Iterate over the records from `offset` on, as `batches` does."""
        start = self.log_start_offset if offset is None else offset
        for batch in self.batches(start, isolation_level=isolation_level):
            for record in batch.records():
                if record.offset >= start:
                    yield record

    def range(
        self, start: int, end: int, *, isolation_level: str = READ_UNCOMMITTED
    ) -> PartitionRange:
        """The offsets [start, end), to be read in another process: it can be pickled.

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
        """Offsets inside (start, end) that cut it into parts of about `size_max` stored bytes.

        Each is the offset behind a batch. Where an offset index is missing there are fewer.
        """
        return self._log.cuts(start, end, size_max)

    def segment_paths(self) -> list[tuple[int, str]]:
        """The base offset and the file of every segment, in order."""
        return self._log.segment_paths()

    def offset_for_timestamp(self, timestamp: int) -> int | None:
        """The offset of the first record that is not older than `timestamp`, in milliseconds.

        None when every record is older.
        """
        return self._log.offset_for_timestamp(timestamp)

    def wait(
        self, offset: int, timeout_ms: int | None, *, isolation_level: str = READ_UNCOMMITTED
    ) -> bool:
        """Wait until `offset` can be read, at most `timeout_ms` (None: for ever); say if it can.

        The files are looked at every 20 ms. Between, the end of the topic is noticed.

        Raises:
            UnknownTopicOrPartition: the topic was deleted, or made anew.
            CorruptRecord: what lies there is damaged.
        """
        scheduler, clock = self._runtime.scheduler, self._runtime.clock
        deadline_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        while True:
            self.refresh()
            is_committed = isolation_level == READ_COMMITTED
            if offset < (self.last_stable_offset if is_committed else self.high_watermark):
                return True
            if self._log.damage is not None:
                raise self._log.damage
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
        """Iterate over the records from `offset` on (None: the log's start), and those to come.

        It ends when none has come for `timeout_ms` (None: never). When retention is faster than
        this reader, it goes on at what is left.
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
