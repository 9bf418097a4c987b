"""Syncs by the clock: complete segments, and topics with flush.ms or flush.messages."""

from __future__ import annotations

from embedlog.storage.log_config import NO_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.storage.log.log import Log

    OnLog = Callable[[Log, Callable[[Log], object]], None]


class PeriodicSync:
    """Remembers the round before."""

    def __init__(self, logs: Callable[[], Sequence[Log]], on: OnLog) -> None:
        """`on` does some work on a log, and notes a failure."""
        self._logs = logs
        self._on = on
        self._sealed: dict[Log, int] = {}
        """Log -> where its last segment began at the last checkpoint, if that was not synced."""
        self._flushed: dict[Log, int] = {}
        """Log -> monotonic time of its last flush."""

    def sync_sealed(self) -> bool:
        """Give logs that sync nothing else a recovery point: Kafka's flush at a roll.

        It comes a round later, when the system has written nearly everything by itself and a sync
        is cheap. Recovery reads nothing below, and treats bad batches there as rot. Return whether
        there is more for the next round.
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
        """Obey flush.ms and flush.messages, for the few topics that set them.

        Return whether there is more to come; `now_ms` is monotonic.
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
