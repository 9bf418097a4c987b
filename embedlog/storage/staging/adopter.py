"""The owner's part of a commit: check a manifest, prepare, place, publish; finish it after a crash.

Lock order: `Adopter.lock`, then the partition locks of all logs of the commit, sorted by partition.
No other code ever holds two partition locks.
"""

from __future__ import annotations

from contextlib import ExitStack

from embedlog import errors
from embedlog.common import TopicPartition, Value
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import remove_tree
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.events import events
from embedlog.storage.replica.truncation import truncate_to
from embedlog.storage.staging.placing import place
from embedlog.storage.staging.staged_file import check_staged, may_be_renamed
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.commit_file import DONE, PREPARED, UNDONE, CommitFile, Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.runtime import Runtime
    from embedlog.storage.log.log import Log
    from embedlog.storage.staging.manifest import Manifest, StagedFile
    from embedlog.storage.state_files.commit_file import Commit

RENAMED_SIZE_MIN = 4 << 20
"""A smaller file does not become a segment of its own; its batches are appended."""


class CommitTarget(Value):
    """A log that gets staged batches, and its partition's leader epoch."""

    log: Log
    leader_epoch: int


class Adopter:
    """Commits manifests for the owner of a data directory. Thread-safe: one commit at a time."""

    def __init__(
        self,
        runtime: Runtime,
        data: str,
        target: Callable[[TopicPartition], CommitTarget],
        *,
        renamed_size_min: int | None = None,
    ) -> None:
        """Read the record of the last commit. `target` finds the log of a partition.

        Files of `renamed_size_min` bytes or more may become segments by a rename.
        """
        self._files = runtime.files
        self._clock = runtime.clock
        self._data = data
        self._staged = staged_layout.part(data, staged_layout.STAGED)
        self._target = target
        self._renamed_size_min = RENAMED_SIZE_MIN if renamed_size_min is None else renamed_size_min
        self.lock = ranked_rlock(Rank.ADOPTION)
        """Held during a commit. A caller that takes manifests holds it as well, so that only one
        thread takes and commits them."""
        self._commits = CommitFile(self._files, data)

    @property
    def last(self) -> Commit | None:
        return self._commits.last

    @property
    def is_pending(self) -> bool:
        """Return whether a commit is prepared but neither done nor undone.

        Then `resume` must run before the next commit.
        """
        last = self._commits.last
        return last is not None and last.state == PREPARED

    def is_done(self, application: str, version: int) -> bool:
        return self._commits.is_done(application, version)

    def adopt(self, manifest: Manifest) -> Commit | None:
        """Commit the files of a manifest; return None if its version was committed before.

        On return the commit is durable, the high watermarks are raised, and the staged files are
        removed.

        Raises:
            CorruptRecord: a staged file differs from the manifest, or is damaged.
            KafkaError: a log or the disk refuses. Nothing was committed.
        """
        with self.lock:
            if self.is_done(manifest.application, manifest.version):
                self._remove_staged(manifest.files)
                return None
            if self.is_pending:
                raise errors.KafkaStorageError(
                    f"{self._data}: an earlier commit is neither done nor undone: {self.last!r}"
                )
            targets = {each: self._target(each) for each in manifest.partitions}
            now_ms = self._clock.wall_ms()
            renamed = {
                staged: self._is_renamed(staged, targets[staged.topic_partition].log, now_ms)
                for staged in manifest.files
            }
            for target in targets.values():
                # Sync most bytes before taking the locks, so that appends wait less.
                target.log.durability.flush()
            with ExitStack() as locks:
                _lock_all(locks, targets)
                pieces = self._assign(manifest, targets, renamed)
                commit = self._prepare(manifest, pieces, targets)
                self._carry_out(commit, targets)
        return commit

    def resume(self) -> None:
        """Complete a commit that a crash has left prepared; undo it if it cannot be completed.

        Requires: nobody reads or writes the directory's logs yet.

        Raises:
            KafkaStorageError: the disk refuses; the commit stays as it is.
        """
        with self.lock:
            commit = self._commits.last
            if commit is None or commit.state != PREPARED:
                return
            targets = self._targets_of(commit)
            with ExitStack() as locks:
                _lock_all(locks, targets)
                if self._is_complete(commit, targets):
                    try:
                        self._carry_out(commit, targets)
                        events.info("a commit of %s was finished", commit.application or commit.id)
                        return
                    except (errors.KafkaError, CorruptRecord) as error:
                        if commit.state == PREPARED:
                            raise
                        events.warning("a commit was rolled back: %s", error)
                else:
                    events.warning("a commit was rolled back: its staged files are gone")
                    self._undo(commit, targets)

    # Steps

    def _is_renamed(self, staged: StagedFile, log: Log, now_ms: int) -> bool:
        stat = staged_layout.staged_file(self._files, self._data, staged.path)
        facts = check_staged(self._files, f"{self._staged}/{staged.path}", staged)
        return (
            staged.size >= self._renamed_size_min
            and stat.name_count == 1  # else its other names would be names of the segment
            and may_be_renamed(facts, staged, log.config, now_ms)
        )

    def _assign(
        self,
        manifest: Manifest,
        targets: Mapping[TopicPartition, CommitTarget],
        renamed: Mapping[StagedFile, bool],
    ) -> list[Piece]:
        """Assign offsets to each file, after syncing the records already in the logs."""
        ends: dict[TopicPartition, int] = {}
        for topic_partition, target in targets.items():
            log = target.log
            if log.chain.is_swapping:
                raise errors.KafkaStorageError(f"{topic_partition}: compaction is at its files")
            log.durability.flush()
            ends[topic_partition] = log.log_end_offset
        pieces = []
        for staged in manifest.files:
            topic_partition = staged.topic_partition
            topic_id = targets[topic_partition].log.topic_id
            piece = Piece(
                topic_partition,
                staged.path,
                base_offset=ends[topic_partition],
                count=staged.count,
                is_renamed=renamed[staged],
                topic_id="" if topic_id is None else topic_id.hex(),
            )
            ends[topic_partition] = piece.end_offset
            pieces.append(piece)
        return pieces

    def _prepare(
        self,
        manifest: Manifest,
        pieces: list[Piece],
        targets: Mapping[TopicPartition, CommitTarget],
    ) -> Commit:
        try:
            return self._commits.prepare(
                pieces, id=manifest.id, application=manifest.application, version=manifest.version
            )
        except BaseException as error:
            last = self._commits.last
            if last is not None and last.state == PREPARED:
                # Undo the record: producers append at these offsets next, but a record that stays
                # prepared would claim them for its files.
                self._decide(last, targets, UNDONE)
            if isinstance(error, OSError):
                raise errors.KafkaStorageError(f"{self._data}: {error}") from error
            raise

    def _carry_out(self, commit: Commit, targets: Mapping[TopicPartition, CommitTarget]) -> None:
        """Place the files that are not in their logs yet, then publish; on an error undo all."""
        try:
            for piece in commit.pieces:
                target = targets.get(piece.topic_partition)
                if target is not None:
                    path = f"{self._staged}/{piece.path}"
                    place(target.log, piece, path, leader_epoch=target.leader_epoch)
            for target in targets.values():
                log = target.log
                log.durability.flush()
                if log.offsets.published is not None:
                    # Readers in other processes still end before the commit; see `commit_file`.
                    log.offsets.published.store(log.log_end_offset)
        except BaseException as error:
            self._undo(commit, targets)
            if isinstance(error, OSError):
                raise errors.KafkaStorageError(f"{self._data}: {error}") from error
            raise
        self._decide(commit, targets, DONE)
        for target in targets.values():
            target.log.offsets.commit(target.log.config.durability == "fsync")
        self._remove_staged(commit.pieces)

    def _undo(self, commit: Commit, targets: Mapping[TopicPartition, CommitTarget]) -> None:
        """Cut the commit's records off the logs. If that fails, the logs refuse writes."""
        starts = commit.starts
        is_cut = False
        try:
            for topic_partition, target in targets.items():
                log = target.log
                if log.log_end_offset > starts[topic_partition]:
                    truncate_to(log, starts[topic_partition])
                if log.offsets.published is not None:
                    log.offsets.published.store(log.offsets.high_watermark)
            is_cut = True
        finally:
            if not is_cut:
                self._refuse_writes(targets, "a commit could not be undone")
        self._decide(commit, targets, UNDONE)

    def _decide(
        self, commit: Commit, targets: Mapping[TopicPartition, CommitTarget], state: str
    ) -> None:
        try:
            self._commits.decide(commit, state)
        except OSError as error:
            raise errors.KafkaStorageError(f"{self._data}: {error}") from error
        finally:
            if commit.state == PREPARED:
                # The next open of the directory decides by the record, which claims the offsets
                # behind the ends of these logs: nothing may be appended until then.
                self._refuse_writes(targets, f"the record of a commit cannot be made {state}")

    def _refuse_writes(self, targets: Mapping[TopicPartition, CommitTarget], reason: str) -> None:
        for target in targets.values():
            target.log.health.poison(errors.KafkaStorageError(reason))

    # After a crash

    def _targets_of(self, commit: Commit) -> dict[TopicPartition, CommitTarget]:
        """Return the logs of a commit; leave out topics that were deleted or created again."""
        found: dict[TopicPartition, CommitTarget] = {}
        for piece in commit.pieces:
            if piece.topic_partition in found:
                continue
            try:
                target = self._target(piece.topic_partition)
            except errors.UnknownTopicOrPartition:
                continue
            topic_id = target.log.topic_id
            if topic_id is None or not piece.topic_id or topic_id.hex() == piece.topic_id:
                found[piece.topic_partition] = target
        return found

    def _is_complete(self, commit: Commit, targets: Mapping[TopicPartition, CommitTarget]) -> bool:
        """Return whether each file of the commit is in its log, or still staged."""
        for piece in commit.pieces:
            target = targets.get(piece.topic_partition)
            if target is None or target.log.log_end_offset >= piece.end_offset:
                continue
            if self._files.stat(f"{self._staged}/{piece.path}") is None:
                return False
        return True

    def _remove_staged(self, files: Iterable[StagedFile | Piece]) -> None:
        """Remove the staging directories of these files' jobs."""
        is_real = staged_layout.is_real(self._files, self._data, self._staged)
        for job in sorted({file.path.partition("/")[0] for file in files}) if is_real else ():
            try:
                remove_tree(self._files, f"{self._staged}/{job}")
            except OSError as error:
                events.debug("%s/%s cannot be removed yet: %s", self._staged, job, error)


def _lock_all(locks: ExitStack, targets: Mapping[TopicPartition, CommitTarget]) -> None:
    """Take the partition locks of all targets, sorted. Requires: the adoption lock."""
    for each in sorted(targets):
        locks.enter_context(targets[each].log.lock)
