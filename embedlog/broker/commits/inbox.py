"""The inbox of a data directory, where other processes ask its owner to commit staged files.

No other process can wake this duty, so it looks regularly:

    there is no exchange directory      once a second: one `stat`
    there is an exchange directory      ten times a second
    a commit came within 5 s            every 20 ms

A `CommitWorker` makes the commits, in a thread that exists only while there are any: a commit of
many gigabytes must not hold up a listener or the thread that drives the duties.
"""

from __future__ import annotations

from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.storage.state_files import staged_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.commits.worker import CommitWorker
    from embedlog.runtime.duty_thread import DutyThread

ABSENT_MS, PRESENT_MS, BUSY_MS = 1_000, 100, 20
_BUSY_FOR_MS = 5_000
_SWEEP_INTERVAL_MS = 600_000


class CommitInbox:
    """The duty that looks for manifests from committers."""

    def __init__(self, broker: Broker) -> None:
        """Finish a commit that a crash has interrupted. Requires: nobody uses the logs yet.

        Raises:
            CorruptRecord: the file that records the last commit is damaged.
            KafkaStorageError: the disk refuses to finish the commit.
        """
        self._broker = broker
        self._runtime = runtime = broker.runtime
        self._files = runtime.files
        self._data = broker.log_manager.first.directory.path
        self._lock = ranked_rlock(Rank.COMMIT_INBOX)
        self._worker: CommitWorker | None = None
        self._thread: DutyThread | None = None
        self._is_closed = False
        self._busy_until_ms = 0
        self._sweep_ms = runtime.clock.monotonic_ms() + _SWEEP_INTERVAL_MS
        if self._files.stat(staged_layout.commit_file(self._data)) is not None:
            self.worker.resume()
        runtime.scheduler.add(self)

    @property
    def worker(self) -> CommitWorker:
        from embedlog.broker.commits.worker import CommitWorker

        with self._lock:
            if self._worker is None:
                self._worker = CommitWorker(self._broker)
            return self._worker

    def run_once(self, now_ms: int) -> int | None:
        """Look into the inbox; return the milliseconds until the next look."""
        if not self._broker.log_manager.first.directory.is_held:
            return None  # closed, or this is a forked child: its parent owns the directory
        try:
            is_present = self._files.stat(staged_layout.exchange(self._data)) is not None
            has_work = is_present and staged_layout.has_manifests(self._files, self._data)
        except OSError:
            return ABSENT_MS  # perhaps the process has no free descriptor; the committer waits
        if has_work:
            self._busy_until_ms = now_ms + _BUSY_FOR_MS
            self._notify()
        elif is_present and now_ms >= self._sweep_ms:
            self._sweep_ms = now_ms + _SWEEP_INTERVAL_MS
            self.worker.sweep()
        if now_ms < self._busy_until_ms:
            return BUSY_MS
        return PRESENT_MS if is_present else ABSENT_MS

    def close(self) -> None:
        """Stop looking; return when the running commit is done."""
        self._runtime.scheduler.remove(self)
        self._is_closed = True
        if self._worker is not None:
            self._worker.is_closed = True
        if self._thread is not None:
            self._thread.close()
        if self._worker is not None:
            self._worker.tidy()

    def _notify(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            if self._thread is None:
                self._thread = self._runtime.scheduler.duty_thread(self.worker, "embedlog-commits")
        self._thread.notify()
