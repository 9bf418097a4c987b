"""The duty that moves a broker's logs between its data directories, slice by slice."""

from __future__ import annotations

from errno import EMFILE, ENFILE

from embedlog.common import Value
from embedlog.errors import ClosedError, EmbedlogError
from embedlog.runtime.files import remove_tree
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage import paths
from embedlog.storage.degradation import MOVE_ENDED, Degradation
from embedlog.storage.events import events
from embedlog.storage.relocation.relocation import LAST_SIZE, Relocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.runtime import Runtime
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.storage.log.log import Log
    from embedlog.storage.relocation.relocation import Directories


SLICE_SIZE = 4 << 20
SLICES_PER_SECOND = 10
"""If a rate is set, a slice is at most the rate divided by this, so that the copy flows evenly."""
WAIT_MS = 100
"""Pause before another try of a move that cannot continue: compaction is replacing the log's
segments, or the process has no file descriptors left."""


class FutureReplica(Value):
    """The state of a log's copy, for reports. `directory` is the data directory it will lie in."""

    log: Log
    directory: str
    size: int
    end_offset: int


class Relocations:
    """The moves of one broker. Thread-safe.

    One move is made at a time, in the order of the requests. A move that has to wait goes to the
    end of the queue.
    """

    def __init__(
        self,
        runtime: Runtime,
        directories: Directories,
        rate: Callable[[], int | None],
        *,
        slice_size: int = SLICE_SIZE,
        last_size: int = LAST_SIZE,
    ) -> None:
        """`rate` returns how many bytes a second may be copied, None for no limit.

        `run_once` copies at most `slice_size` bytes. Once no more than `last_size` bytes are left,
        these are copied under the log's locks.
        """
        self._runtime = runtime
        self._directories = directories
        self._rate = rate
        self._slice_size = slice_size
        self._last_size = last_size
        self._lock = ranked_rlock(Rank.RELOCATION)
        self._moves: dict[TopicPartition, Relocation] = {}
        self._is_stopped = False
        self.failed: dict[TopicPartition, Degradation] = {}
        """Moves that failed, by partition. A new request for the partition removes the entry."""
        runtime.scheduler.add(self)

    def take_cut_short(self) -> dict[TopicPartition, LogManager]:
        """Remove the copies of moves that an earlier process did not complete.

        Return the target directory of each, so that the caller can request the move again.
        Requires: no move was requested yet.
        """
        found: dict[TopicPartition, LogManager] = {}
        for target in self._directories.managers:
            files, data = target.directory.files, target.directory.path
            try:
                for name in files.list(data):
                    topic_partition = paths.parse_future_log(name)
                    if topic_partition is not None:
                        remove_tree(files, f"{data}/{name}")
                        found[topic_partition] = target
            except OSError as error:
                events.warning("nothing is moved to %s: %s", data, error)
        return found

    def cancel(self, topic_partition: TopicPartition, *, unless_to: str) -> None:
        """Give up the partition's move, unless it goes to the data directory `unless_to`."""
        with self._lock:
            known = self._moves.get(topic_partition)
            if known is not None and known.target.directory.path != unless_to:
                self._end(known)

    def start(self, topic_partition: TopicPartition, path: str) -> None:
        """Request a move of the partition's log to the data directory `path`.

        A move to another directory is given up. Nothing else happens if the log is there or moving
        there, if the partition has no log, or if the directory is offline.

        Raises:
            KafkaStorageError: the log cannot be opened.
        """
        self.cancel(topic_partition, unless_to=path)
        with self._lock:
            self.failed.pop(topic_partition, None)
            managers = self._directories.managers
            target = next((each for each in managers if each.directory.path == path), None)
            source = self._directories.holder(topic_partition)
            log = None if source is None or source is target else source.get(topic_partition)
            if source is None or target is None or log is None:
                return
            if topic_partition in self._moves or self._is_stopped:
                return
            self._moves[topic_partition] = Relocation(
                self._directories,
                log,
                source=source,
                target=target,
                uuid=self._runtime.random.uuid(),
            )
        self._runtime.scheduler.notify(self)

    def futures(self) -> dict[TopicPartition, FutureReplica]:
        return {
            topic_partition: FutureReplica(
                move.log,
                move.target.directory.path,
                size=move.future.size,
                end_offset=move.future.end_offset,
            )
            for topic_partition, move in self._moves.copy().items()
        }

    def run_once(self, _now_ms: int) -> int | None:
        """Do a slice of the first move; return the milliseconds until the next, None if idle."""
        with self._lock:
            if self._is_stopped or not self._moves:
                return None
            move = next(iter(self._moves.values()))
            rate = self._rate()
            slice_size, last_size = self._slice_size, self._last_size
            if rate is not None:
                slice_size = min(slice_size, max(1, rate // SLICES_PER_SECOND))
                last_size = min(last_size, slice_size)
            try:
                size, is_over = self._continue(move, slice_size, last_size)
            except (OSError, EmbedlogError) as error:
                return self._refused(move, error)
            if not size and not is_over:
                return self._wait(move)
        if is_over:
            self._directories.report()
            name, path = move.log.topic_partition, move.target.directory.path
            events.info("%s has moved to %s", name, path)
        return 1 if rate is None else max(1, size * 1000 // max(1, rate))

    def stop(self) -> None:
        """Close the files and stop. Unfinished moves begin again at the next start."""
        with self._lock:
            self._is_stopped = True
            for move in self._moves.values():
                move.future.close()
            self._moves.clear()
        self._runtime.scheduler.remove(self)

    def health(self) -> list[Degradation]:
        """Return the failed moves of logs that still exist."""
        return [
            failed
            for topic_partition, failed in self.failed.copy().items()
            if self._directories.holder(topic_partition) is not None
        ]

    # Steps

    def _continue(self, move: Relocation, slice_size: int, last_size: int) -> tuple[int, bool]:
        for manager in (move.source, move.target):
            if manager not in self._directories.managers:
                raise ClosedError(f"{manager.directory.path} is offline")
        if not move.future.size:
            move.future.make()
        size, is_over = move.step(slice_size, last_size=last_size)
        if is_over:
            del self._moves[move.log.topic_partition]
        return size, is_over

    def _wait(self, move: Relocation) -> int:
        move.future.close()
        self._moves[move.log.topic_partition] = self._moves.pop(move.log.topic_partition)
        return WAIT_MS

    def _refused(self, move: Relocation, error: OSError | EmbedlogError) -> int:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(cause, OSError) and cause.errno in (EMFILE, ENFILE):
            return self._wait(move)
        log = move.log
        if not isinstance(error, ClosedError) and not isinstance(log.failure, ClosedError):
            path = f"{log.directory} to {move.target.directory.path}"
            events.error("%s: the move from %s has ended: %s", log.topic_partition, path, error)
            self.failed[log.topic_partition] = Degradation(
                MOVE_ENDED,
                f"{log.topic_partition}: from {path}",
                since_ms=self._runtime.clock.wall_ms(),
                reason=str(error),
            )
        self._end(move)
        return 1

    def _end(self, move: Relocation) -> None:
        """Give up a move, and remove its copy. Requires: the lock."""
        self._moves.pop(move.log.topic_partition, None)
        try:
            move.future.discard()
        except OSError as error:
            events.debug("%s cannot be removed yet: %s", move.future.directory, error)
