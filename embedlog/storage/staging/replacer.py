"""Replacing segments, in the directory's owner: check rewritten files, copy and swap them in."""

from __future__ import annotations

from collections.abc import Callable

from embedlog import errors
from embedlog.common import Value
from embedlog.errors import CorruptRecord
from embedlog.runtime import Runtime
from embedlog.runtime.files import remove_tree
from embedlog.storage import paths
from embedlog.storage.cleaner.output import CleanedOutput
from embedlog.storage.events import events
from embedlog.storage.log.log import Log
from embedlog.storage.producers.append import load_aborted
from embedlog.storage.segments.segment import Segment
from embedlog.storage.staging.manifest import Replacement, ReplacingFile
from embedlog.storage.staging.segment_facts import SegmentFacts
from embedlog.storage.staging.staged_file import SIZE_MAX, read_batches
from embedlog.storage.state_files import staged_layout
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import RecordsError


class _Ready(Value):
    """A segment and the finished, synced file that shall replace it."""

    former: Segment
    output: CleanedOutput
    has_gaps: bool


class Replacer:
    """Replaces segments by rewritten files, for a data directory's owner. One call at a time."""

    def __init__(self, runtime: Runtime, data: str, remove: Callable[[list[str]], None]) -> None:
        """`remove` is called with the paths of files to remove."""
        self._files = runtime.files
        self._data = data
        self._staged = staged_layout.part(data, staged_layout.STAGED)
        self._remove = remove
        self._pending: tuple[Log, _Ready] | None = None

    @property
    def is_pending(self) -> bool:
        """Return whether a swap waits for room on the disk: see `complete`."""
        return self._pending is not None

    def replace(self, log: Log, replacement: Replacement) -> tuple[int, int]:
        """Replace segments by the staged files; return the (first, end) offsets of the segments.

        On return the change is durable (except at durability `memory`), and the staged files are
        removed.

        Raises:
            CorruptRecord: a staged file is damaged, or does not agree with its segment.
            KafkaError: a segment has changed since it was read, or the disk refuses. Nothing was
                changed, unless the message says how many were replaced.
        """
        self.complete()
        self._check_log(log, replacement)
        if replacement.is_roll:
            with log.lock:
                log.roll()
            return (log.offsets.log_start_offset, log.log_end_offset)
        ready: list[_Ready] = []
        try:
            for file in sorted(replacement.files, key=lambda file: file.base_offset):
                ready.append(self._prepare(log, file))
            span = self._swap(log, ready)
        except OSError as error:
            raise errors.KafkaStorageError(f"{log.topic_partition}: {error}") from error
        finally:
            self._discard(log, ready)
        self._remove_staged(replacement)
        return span

    def complete(self) -> None:
        """Complete a swap that a full disk interrupted at a point where it cannot be undone.

        Raises:
            KafkaStorageError: the disk is still too full.
        """
        if self._pending is None:
            return
        log, ready = self._pending
        with log.lock:
            if log.failure is None and log.chain.is_swapping:
                self._remove(ready.output.swap_in((ready.former,)))
        self._pending = None

    # Steps

    def _check_log(self, log: Log, replacement: Replacement) -> None:
        known = "" if log.topic_id is None else log.topic_id.hex()
        if known and replacement.topic_id and known != replacement.topic_id:
            raise errors.UnknownTopicOrPartition(
                f"{log.topic_partition} has the topic id {known}, and {replacement.topic_id} was "
                "rewritten: the topic was made anew"
            )
        if log.failure is not None:
            raise errors.KafkaStorageError(f"{log.topic_partition}: {log.failure}")

    def _prepare(self, log: Log, file: ReplacingFile) -> _Ready:
        former = self._find(log, file)
        before = _facts(former, file)
        aborted = former.aborted.index
        if aborted is None:
            aborted = load_aborted(log.files, log.directory, log.segments, former)
        output = CleanedOutput(log, former.base_offset, aborted, suffix=paths.REWRITTEN)
        is_done = False
        try:
            after = self._copy(output, file, former, before)
            output.finish(former.next_offset, former.modified_ms)
            is_done = True
        finally:
            if not is_done:
                output.discard()
        has_gaps = after.has_gaps or after.next_offset != former.next_offset
        return _Ready(former, output, has_gaps=has_gaps)

    def _find(self, log: Log, file: ReplacingFile) -> Segment:
        for segment in log.segments[:-1]:
            if segment.base_offset == file.base_offset:
                if segment.next_offset > log.offsets.high_watermark:
                    raise _changed(log, file, "it reaches beyond the high watermark")
                if segment.size != file.former_size:
                    raise _changed(log, file, f"it has {segment.size} bytes")
                return segment
        raise _changed(log, file, "there is no closed segment at that offset any more")

    def _copy(
        self, output: CleanedOutput, file: ReplacingFile, former: Segment, before: SegmentFacts
    ) -> SegmentFacts:
        path = f"{self._staged}/{file.path}"
        staged_layout.staged_file(self._files, self._data, file.path)
        after = SegmentFacts(former.base_offset)
        staged = self._files.open(path, writable=False)
        try:
            size = staged.size()
            if size != file.size or size > SIZE_MAX:
                raise CorruptRecord(path, size, f"{size} bytes, the manifest says {file.size}")
            for position, view in read_batches(staged, size, path):
                batch = RecordBatch(view)
                _check_place(batch, former, before, after, (path, position))
                after.add(batch)
                output.append(batch)
        finally:
            staged.close()
        if after.producers != before.producers:
            count, known = len(after.producers), len(before.producers)
            reason = f"its {count} batches of producers are not the segment's {known}"
            raise CorruptRecord(path, 0, reason)
        return after

    def _swap(self, log: Log, ready: list[_Ready]) -> tuple[int, int]:
        count = len(ready)
        with log.lock:
            if log.chain.is_swapping:
                raise errors.KafkaStorageError(
                    f"{log.topic_partition}: compaction is at its files; run the job again"
                )
            for each in ready:
                if each.former not in log.segments[:-1]:
                    raise errors.KafkaStorageError(
                        f"{each.former.path} was compacted or removed meanwhile; run the job again"
                    )
            span = (ready[0].former.base_offset, ready[-1].former.next_offset)
            if any(each.has_gaps for each in ready):
                if log.offsets.cleaned_offset < 0:
                    # If the gaps file is lost, only the cleaned offset tells that the log may have
                    # gaps.
                    log.offsets.cleaned_offset = log.segments[0].base_offset
                log.offsets.allow_gaps_below(span[1])
            while ready:
                each = ready[0]
                try:
                    useless = each.output.swap_in((each.former,))
                except errors.KafkaStorageError as error:
                    if log.chain.is_swapping:
                        del ready[0]
                        if log.failure is None:
                            self._pending = (log, each)
                    done = count - len(ready)
                    if done:
                        raise errors.KafkaStorageError(
                            f"{error} ({done} of {count} segments were replaced)"
                        ) from error
                    raise
                del ready[0]
                self._remove(useless)
        return span

    def _discard(self, log: Log, ready: list[_Ready]) -> None:
        for each in ready:
            try:
                each.output.discard()
            except OSError as error:
                events.debug("%s: the next open removes the rest: %s", log.directory, error)

    def _remove_staged(self, replacement: Replacement) -> None:
        for job in sorted({file.path.partition("/")[0] for file in replacement.files}):
            for file in replacement.files:
                if file.path.startswith(f"{job}/"):
                    self._remove([f"{self._staged}/{file.path}"])
            try:
                if not self._files.list(f"{self._staged}/{job}"):
                    remove_tree(self._files, f"{self._staged}/{job}")
            except OSError as error:
                events.debug("%s/%s cannot be removed yet: %s", self._staged, job, error)


def _facts(former: Segment, file: ReplacingFile) -> SegmentFacts:
    """Return the facts that a rewritten file must keep.

    Raises:
        KafkaStorageError: the segment has other batches than the task read.
    """
    facts = SegmentFacts(former.base_offset)
    size = former.size
    try:
        for batch in iter_batches(former.file.view(0, size), 0, size):
            facts.add(batch)
    except RecordsError as error:
        raise CorruptRecord(former.path, 0, str(error)) from None
    if facts.fingerprint != file.fingerprint:
        raise errors.KafkaStorageError(
            f"{former.path} has other batches than the rewritten ones; run the job again"
        )
    return facts


def _check_place(
    batch: RecordBatch,
    former: Segment,
    before: SegmentFacts,
    after: SegmentFacts,
    where: tuple[str, int],
) -> None:
    first, last = batch.base_offset, batch.last_offset
    if first < after.next_offset or not first <= last < former.next_offset:
        reason = f"offsets {first}..{last}, of {after.next_offset} to {former.next_offset - 1}"
        raise CorruptRecord(*where, reason)
    epoch = batch.partition_leader_epoch
    for offset in (first, last):
        if before.epoch_of(offset) != epoch:
            known = before.epoch_of(offset)
            raise CorruptRecord(*where, f"leader epoch {epoch} at {offset}, which is of {known}")


def _changed(log: Log, file: ReplacingFile, what: str) -> errors.KafkaError:
    return errors.KafkaStorageError(
        f"{log.topic_partition}: the segment at {file.base_offset}, of {file.former_size} bytes, "
        f"cannot be replaced: {what}; run the job again"
    )
