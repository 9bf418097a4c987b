"""The broker settings that compaction reads."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class CleanerSettings(Protocol):
        """Kafka's log.cleaner settings of a broker. The cleaner reads them anew for each use."""

        @property
        def log_cleaner_enable(self) -> bool: ...
        @property
        def log_cleaner_backoff_ms(self) -> int: ...
        @property
        def log_cleaner_dedupe_buffer_size(self) -> int: ...
        @property
        def log_cleaner_io_buffer_load_factor(self) -> float: ...
        @property
        def log_cleaner_io_max_bytes_per_second(self) -> float: ...


class DefaultSettings:
    """Kafka's default settings, for a data directory that is used without a broker."""

    log_cleaner_enable = True
    log_cleaner_backoff_ms = 15_000
    log_cleaner_dedupe_buffer_size = 128 << 20
    log_cleaner_io_buffer_load_factor = 0.9
    log_cleaner_io_max_bytes_per_second = float("inf")
