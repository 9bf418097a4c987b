"""`backup`: copy a data directory while its owner writes it, or while nobody has it open.

The copy is the directory at one moment: every record below the high watermarks of that moment,
committed offsets, the state of transactions, topics and settings. To find the moment:

    nobody has the directory open     hold its lock; the files do not change
    the owner answers                 it reads all high watermarks with the locks of all logs held
    it does not, or is several        the high watermarks did not change between two looks

The logs are then copied batch by batch up to those offsets, with all checksums checked. Meanwhile
the owner may append, roll, compact, remove old segments or die. The copy has no indexes and no
clean-shutdown marker: the first opening recovers it, as after a crash.

All is written and synced under another name, and renamed at the end: a backup is whole, or it is
not there.
"""

from __future__ import annotations

from contextlib import ExitStack

from embedlog import errors
from embedlog.common import TopicPartition, Value
from embedlog.errors import ConfigError, DirectoryLocked, TimedOut
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.files import Files, make_directory, parent, remove_tree, write_fully
from embedlog.runtime.pending import Pending
from embedlog.storage import paths
from embedlog.storage.directory.data_path import data_directory, existing_directory
from embedlog.storage.foreign.log import ForeignLog
from embedlog.storage.log.gaps import read_gaps_below, write_gaps
from embedlog.storage.staging import exchange
from embedlog.storage.staging.manifest import EndsRequest
from embedlog.storage.state_files import archived_offsets, staged_layout
from embedlog.storage.state_files.checkpoint_files import encode_offsets, read_offsets
from embedlog.storage.state_files.commit_file import DONE, UNDONE
from embedlog.storage.state_files.sealed_file import write_sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import StrPath

    from embedlog.runtime.files import File
    from embedlog.storage.foreign.segment import Batch

    Ends = Mapping[TopicPartition, tuple[int, int]]
    """Start offset and high watermark of each log."""
    Plan = Mapping[TopicPartition, tuple[str, tuple[int, int]]]
    """The directory from which each log is copied, and the log's offsets."""

_UNFINISHED = ".unfinished"
_TIMEOUT_MS = 30_000
_LOOK_MS = 50
_SEGMENT_SIZE_MAX = 1 << 30
_ATTEMPTS = 20
_PUBLISHED_LOOKS_MAX = 100
_MODE = 0o700


class BackupReport(Value):
    """Counts of a backup; `bytes` of record batches. `missing` logs were deleted meanwhile."""

    partitions: int
    batches: int
    bytes: int
    missing: tuple[str, ...]


def backup(
    path: StrPath,
    target: StrPath,
    *,
    timeout_ms: int = _TIMEOUT_MS,
    runtime: Runtime | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> BackupReport:
    """Copy the data directory at `path`, of one broker or of several, to a new one at `target`.

    `progress` gets partitions: done, total.

    Raises:
        ConfigError: `path` is no data directory, or `target` exists and is not empty.
        CorruptRecord: a log is damaged; the message names file and position.
        TimedOut: for `timeout_ms` the owner has not answered, and the logs never stood still.
        OSError: a directory cannot be read or written.
    """
    return BackupRun(runtime or real_runtime(), path, target, timeout_ms, progress).run()


class BackupRun:
    """One backup: find the moment, copy each log, rename the copy."""

    def __init__(
        self,
        runtime: Runtime,
        path: StrPath,
        target: StrPath,
        timeout_ms: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self._runtime = runtime
        self._files = files = runtime.files
        self._timeout_ms = timeout_ms
        self._progress = progress
        self._parts = _parts(files, path)
        """Name below the target -> data directory of the source."""
        given = data_directory(target)
        if given is None:
            raise ConfigError(f"{target}: a backup needs a directory")
        self._target = files.absolute(given)
        stat = files.stat(self._target)
        if stat is not None and (not stat.is_directory or files.list(self._target)):
            raise ConfigError(f"{self._target} exists already: name a new directory")
        self._whole = files.absolute(str(data_directory(path)))
        if self._target == self._whole or self._target.startswith(f"{self._whole}/"):
            raise ConfigError(f"{self._target} lies in {self._whole}")
        self._state: dict[str, dict[str, bytes]] = {}
        self._missing: list[str] = []
        self._batch_count = self._size = 0

    def run(self) -> BackupReport:
        unfinished = self._target + _UNFINISHED
        remove_tree(self._files, unfinished)
        make_directory(self._files, unfinished, sync=True, mode=_MODE)
        with ExitStack() as held:
            plans = self._plans(self._moment(held))
            total = sum(map(len, plans.values()))
            done = 0
            for name, plan in plans.items():
                copy = unfinished + name
                if name:
                    make_directory(self._files, copy, sync=True, mode=_MODE)
                for topic_partition, (source, span) in sorted(plan.items()):
                    self.copy_log(source, copy, topic_partition, span)
                    done += 1
                    self._progress(done, total)
                self._copy_state(name, copy, plan)
        if "" not in self._parts:
            _copy_file(self._files, self._whole, unfinished, paths.CLUSTER_PROPERTIES)
        self._files.sync_directory(unfinished)
        if self._files.stat(self._target) is not None:
            self._files.remove(self._target)  # it is empty
        self._files.rename(unfinished, self._target)
        self._files.sync_directory(parent(self._target))
        return BackupReport(total, self._batch_count, self._size, tuple(self._missing))

    def _plans(self, ends: dict[str, Ends]) -> dict[str, Plan]:
        """Return the source and the span of each log of the copy, by directory.

        Followers learn the high watermark late. Each replica is copied from the one with the
        highest, so that all have every committed record, whichever leads at the next opening.
        """
        best: dict[TopicPartition, tuple[str, tuple[int, int]]] = {}
        for name, spans in ends.items():
            for topic_partition, span in spans.items():
                known = best.get(topic_partition)
                if known is None or span[1] > known[1][1]:
                    best[topic_partition] = self._parts[name], span
        return {name: {each: best[each] for each in spans} for name, spans in ends.items()}

    # The moment

    def _moment(self, held: ExitStack) -> dict[str, Ends]:
        """Return the spans of all logs at one moment, by directory; keep the small files of then.

        `held` closes the locks of directories that nobody has open.
        """
        clock, scheduler = self._runtime.clock, self._runtime.scheduler
        until_ms = clock.monotonic_ms() + self._timeout_ms
        asked = None
        seen: dict[str, Ends] = {}
        self._state = self._read_state()
        while not self._own(held):
            if asked is None:
                asked = self._ask()
            scheduler.wait(Pending(), _LOOK_MS)
            before, self._state = self._state, self._read_state()
            answered = self.answer(asked)
            if answered is not None:
                if before == self._state:
                    return answered
                asked = None  # staged files were committed meanwhile
            now = self.look()
            if now == seen and before == self._state == self._read_state():
                self._withdraw(asked)
                return now
            seen = now
            if clock.monotonic_ms() >= until_ms:
                self._withdraw(asked)
                raise TimedOut(
                    f"{self._whole}: for {self._timeout_ms} ms its owner has not answered, and its "
                    "logs never stood still: pause the writers, or close it"
                )
        self._withdraw(asked)
        self._state = self._read_state()
        return self.look()

    def _read_state(self) -> dict[str, dict[str, bytes]]:
        """Return the content of the small files that belong to the moment, by directory."""
        return {name: _small_files(self._files, source) for name, source in self._parts.items()}

    def _own(self, held: ExitStack) -> bool:
        """Lock all directories; return False if somebody has one open."""
        with ExitStack() as locks:
            for source in self._parts.values():
                try:
                    lock = self._files.lock(f"{source}/{paths.LOCK}", names_owner=False)
                except DirectoryLocked:
                    return False
                locks.callback(lock.close)
            held.push(locks.pop_all())
        return True

    def _ask(self) -> str | None:
        """Ask the owner of a single broker's directory; return the id of the question."""
        if "" not in self._parts:
            return None
        id = self._runtime.random.uuid().hex()
        try:
            exchange.leave(self._files, self._parts[""], EndsRequest(id))
        except OSError:
            return None  # without the right to write there, the logs must stand still
        return id

    def answer(self, id: str | None) -> dict[str, Ends] | None:
        if id is None:
            return None
        source = self._parts[""]
        answer = exchange.read_answer(self._files, source, id)
        if answer is None:
            return None
        exchange.remove_answer(self._files, source, id)
        exchange.tidy(self._files, source)
        answer.check()
        return {"": answer.ranges}

    def _withdraw(self, asked: str | None) -> None:
        if asked is not None:
            source = self._parts[""]
            if not exchange.withdraw(self._files, source, asked):
                exchange.remove_answer(self._files, source, asked)
            exchange.tidy(self._files, source)

    def look(self) -> dict[str, Ends]:
        return {name: self._spans(source) for name, source in self._parts.items()}

    def _spans(self, source: str) -> Ends:
        found = {}
        for topic_partition in _partitions(self._files, source):
            try:
                log = ForeignLog(self._files, source, topic_partition, is_checked=False)
            except errors.UnknownTopicOrPartition:
                continue  # deleted, or not complete yet
            found[topic_partition] = log.log_start_offset, log.high_watermark
        return found

    # The copy

    def copy_log(
        self, source: str, copy: str, topic_partition: TopicPartition, span: tuple[int, int]
    ) -> None:
        place = paths.log_directory(copy, topic_partition)
        start, end = span
        for _ in range(_ATTEMPTS):
            remove_tree(self._files, place)
            make_directory(self._files, place, sync=False)
            writer = _Segments(self._files, place, start)
            try:
                log = self._opened(source, topic_partition, end)
                start = max(start, log.log_start_offset)
                for batch in log.batches(start, end) if start < end else ():
                    writer.add(batch)
                break
            except errors.OffsetOutOfRange:
                continue  # retention has removed records meanwhile: begin behind them
            except errors.UnknownTopicOrPartition:
                self._missing.append(str(topic_partition))
                remove_tree(self._files, place)
                return
        else:
            raise TimedOut(f"{topic_partition}: records are deleted faster than they are copied")
        writer.close(end)
        self._batch_count += writer.count
        self._size += writer.size
        former = paths.log_directory(source, topic_partition)
        _copy_file(self._files, former, place, paths.PARTITION_METADATA)
        self._files.sync_directory(place)

    def _opened(self, source: str, topic_partition: TopicPartition, end: int) -> ForeignLog:
        """Return the log once its owner has published the records below `end`."""
        log = ForeignLog(self._files, source, topic_partition, is_checked=False)
        for _ in range(_PUBLISHED_LOOKS_MAX):
            if log.high_watermark >= end:
                return log
            if log.damage is not None:
                raise log.damage
            self._runtime.scheduler.wait(Pending(), _LOOK_MS)
            log.refresh()
        raise TimedOut(f"{topic_partition} ends at {log.high_watermark} for readers, not at {end}")

    def _copy_state(self, name: str, copy: str, plan: Plan) -> None:
        """Copy the small files of the directory `name`, for the logs of the copy."""
        files = self._files
        starts: dict[TopicPartition, int] = {}
        cleaned: dict[TopicPartition, int] = {}
        gaps: dict[TopicPartition, int] = {}
        sources = {source for source, _ in plan.values()}
        known_starts = {
            each: read_offsets(files, each, paths.LOG_START_OFFSETS) for each in sources
        }
        known_cleaned = {each: read_offsets(files, each, paths.CLEANER_OFFSETS) for each in sources}
        for each, (source, (start, end)) in plan.items():
            starts[each] = max(start, min(known_starts[source].get(each, 0), end))
            at = known_cleaned[source].get(each)
            if at is not None:
                cleaned[each] = min(at, end)
            below = read_gaps_below(files, source, each)
            if below > 0:
                gaps[each] = below
        _write(files, copy, paths.LOG_START_OFFSETS, starts)
        _write(files, copy, paths.CLEANER_OFFSETS, cleaned)
        write_gaps(files, copy, gaps)
        for file, content in self._state[name].items():
            _store(files, f"{copy}/{file}", content)
        files.sync_directory(copy)


class _Segments:
    """Writes the batches of one log into segments, the first of them at `base_offset`."""

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self._directory = directory
        self._file: File | None = None
        self._position = 0
        self._next_offset = base_offset
        self.count = 0
        self.size = 0

    def add(self, batch: Batch) -> None:
        content = memoryview(batch.buffer)
        if self._file is None or self._position + len(content) > _SEGMENT_SIZE_MAX:
            self._begin(batch.base_offset)
        assert self._file is not None
        self._position += write_fully(self._file.write, (content,), self._position)
        self._next_offset = batch.last_offset + 1
        self.count += 1
        self.size += len(content)

    def close(self, end: int) -> None:
        """Sync the last segment. If the last records were removed, an empty one begins at `end`."""
        if self._file is None or self._next_offset < end:
            self._begin(max(self._next_offset, end))
        self._end()

    def _begin(self, base_offset: int) -> None:
        self._end()
        path = paths.segment_file(self._directory, base_offset)
        self._file = self._files.open(path, create=True)
        self._position = 0

    def _end(self) -> None:
        if self._file is not None:
            self._file.sync()
            self._file.close()


def _parts(files: Files, path: StrPath) -> dict[str, str]:
    """Return the data directories of a broker, or of several, by their names below `path`."""
    given = data_directory(path)
    whole = given and files.absolute(given)
    if not whole or files.stat(f"{whole}/{paths.CLUSTER_PROPERTIES}") is None:
        return {"": existing_directory(files, path, is_empty_fine=False)}
    names = [each for each in files.list(whole) if not each.startswith(".")]
    return {
        f"/{each}": existing_directory(files, f"{whole}/{each}")
        for each in names
        if files.stat(f"{whole}/{each}/{paths.LOCK}") is not None
    }


def _partitions(files: Files, source: str) -> list[TopicPartition]:
    found = map(paths.parse_log_directory, files.list(source))
    return sorted(each for each in found if each is not None)


def _small_files(files: Files, source: str) -> dict[str, bytes]:
    """Return the identity of a directory, the record of commits, and the offsets of archives."""
    names = [paths.META_PROPERTIES, staged_layout.COMMIT]
    names += [f"{staged_layout.COMMIT}.{state}" for state in (DONE, UNDONE)]
    names += [each for each in files.list(source) if each.startswith(archived_offsets.PREFIX)]
    found = {}
    for name in names:
        stat = files.stat(f"{source}/{name}")
        if stat is not None and stat.is_file:
            try:
                found[name] = files.read(f"{source}/{name}")
            except FileNotFoundError:
                continue  # replaced just now: the next look finds it
    return found


def _write(files: Files, copy: str, name: str, offsets: dict[TopicPartition, int]) -> None:
    write_sealed(files, f"{copy}/{name}{paths.SEALED}", encode_offsets(offsets), sync=True)
    _store(files, f"{copy}/{name}", encode_offsets(offsets))


def _copy_file(files: Files, source: str, copy: str, name: str) -> None:
    """Copy a small file, if it exists."""
    try:
        content = files.read(f"{source}/{name}")
    except FileNotFoundError:
        return
    _store(files, f"{copy}/{name}", content)


def _store(files: Files, path: str, content: bytes) -> None:
    file = files.open(path, create=True)
    if content:
        write_fully(file.write, (content,), 0)
    file.sync()
    file.close()
