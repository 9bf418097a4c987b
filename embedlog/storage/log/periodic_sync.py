"""Syncs at intervals: of full segments, and of topics with flush.ms or flush.messages."""

from __future__ import annotations

from embedlog.storage.log_config import NO_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.storage.log.log import Log

    OnLog = Callable[[Log, Callable[[Log], object]], None]


class PeriodicSync:
    """Syncs all logs of a data directory in rounds; it remembers the previous round."""

    def __init__(self, logs: Callable[[], Sequence[Log]], on: OnLog) -> None:
        """`on(log, work)` calls `work(log)` and records a failure."""
        self._logs = logs
        self._on = on
        self._sealed: dict[Log, int] = {}
        """Log -> base offset of its last segment in the previous round.

        Only for logs with full segments that the previous round did not sync.
        """
        self._flushed: dict[Log, int] = {}
        """Log -> monotonic time of its last flush, or of the first round that saw it."""

    def sync_sealed(self) -> bool:
        """Sync full segments of logs at durability `os`, as Kafka flushes a segment at its roll.

        A round finds the full segments, and the next round syncs them. By then the system has
        written nearly all of their bytes, so the sync is cheap. The sync raises the log's recovery
        point: recovery reads nothing below it, and treats bad batches there as rot. Return whether
        the next round has something to sync.
        """
        former, self._sealed = self._sealed, {}
        for log in self._logs():
            end = log.segments[-1].base_offset
            if log.config.durability != "os" or log.failure is not None:
                continue
            if former.get(log, 0) > log.durability.synced_offset:
                self._on(log, lambda log: log.durability.sync_sealed(former[log]))
            if end > log.durability.synced_offset:
                self._sealed[log] = end
        return bool(self._sealed)

    def flush(self, now_ms: int) -> bool:
        """Sync each log that has reached its topic's flush.ms or flush.messages.

        `now_ms` is monotonic. Return whether any log with these settings had unsynced records.
        """
        logs = self._logs()
        is_any_unsynced = False
        self._flushed = {log: self._flushed[log] for log in logs if log in self._flushed}
        for log in logs:
            config = log.config
            if config.flush_ms == NO_LIMIT and config.flush_messages == NO_LIMIT:
                continue
            last_ms = self._flushed.setdefault(log, now_ms)
            unsynced = log.log_end_offset - log.durability.synced_offset
            is_any_unsynced = is_any_unsynced or unsynced > 0
            if unsynced and (
                now_ms - last_ms >= config.flush_ms or unsynced >= config.flush_messages
            ):
                self._flushed[log] = now_ms
                self._on(log, lambda log: log.durability.flush())
        return is_any_unsynced
