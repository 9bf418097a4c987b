"""The settings of one log: a topic's configuration as plain attributes.

Each attribute is the topic setting of that name with underscores for dots, in the unit of its name.
Six are not topic settings of Kafka: `durability` (embedlog's acknowledgement level),
`max_batch_headers`, `max_compressed_records` and `max_partition_producer_ids` (embedlog's limits),
`retention_archived` (see `archived_offsets`), and the producer expiry, which Kafka sets for a whole
broker.
"""

from __future__ import annotations

from embedlog.errors import ConfigError

TYPE_CHECKING = False

NO_LIMIT = 2**63 - 1
"""Kafka's Long.MAX_VALUE: a time or count that is never reached."""

_PLAIN_RECORD_SIZE = 10
"""Size of the smallest plain record with a value of one byte and a header or a key. It determines
how many records or headers fit in a batch."""

DURABILITIES = ("memory", "os", "fsync")
"""In rising order: an acknowledged record survives nothing, the end of this process, or a loss of
power."""


class _Settings:
    """The settings with their defaults."""

    __slots__ = ()

    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT
    index_interval_bytes: int = 4096
    max_batch_headers: int | None = None
    max_compaction_lag_ms: int = NO_LIMIT
    max_compressed_records: int | None = None
    max_decompressed_message_bytes: int = 64 << 20
    max_message_bytes: int = 1_048_588
    max_partition_producer_ids: int = 10_000
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = NO_LIMIT
    message_timestamp_after_max_ms: int = 3_600_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_archived: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    producer_id_expiration_ms: int = 86_400_000
    durability: str = "os"


DEFAULTS: dict[str, object] = {name: getattr(_Settings, name) for name in _Settings.__annotations__}


class LogConfig(_Settings):
    """The settings of a log. Immutable by convention: a change of configuration makes a new object.

    These attributes are derived from the settings. `compact` and `delete` are the policies that
    `cleanup_policy` lists. With `log_append_time` the broker's clock stamps the records. With
    `keeps_plain` a plain batch is stored as it was sent. `batch_size_max` is the smaller of
    max.message.bytes and segment.bytes, `compressed_count_max` the most records in a compressed
    batch, `header_count_max` the most headers in any batch. A segment takes appends for
    `segment_age_ms` at most; on a compacted topic max.compaction.lag.ms bounds this as well,
    because compaction leaves the last segment alone.
    """

    __slots__ = (
        *DEFAULTS,
        "batch_size_max",
        "compact",
        "compressed_count_max",
        "delete",
        "header_count_max",
        "keeps_plain",
        "log_append_time",
        "segment_age_ms",
    )

    if TYPE_CHECKING:
        batch_size_max: int
        compact: bool
        compressed_count_max: int
        delete: bool
        header_count_max: int
        keeps_plain: bool
        log_append_time: bool
        segment_age_ms: int

    def __init__(self, **values: object) -> None:
        """Make the settings from keywords; a setting that is not given has its default.

        Raises:
            ConfigError: a setting is unknown, or the durability does not exist.
        """
        unknown = values.keys() - DEFAULTS.keys()
        if unknown:
            raise ConfigError(f"unknown log settings: {', '.join(sorted(unknown))}")
        for name, value in {**DEFAULTS, **values}.items():
            setattr(self, name, value)
        if self.durability not in DURABILITIES:
            raise ConfigError(f"durability {self.durability!r}: expected one of {DURABILITIES}")
        policies = self.cleanup_policy.replace(" ", "").split(",")
        self.compact = "compact" in policies
        self.delete = "delete" in policies
        self.log_append_time = self.message_timestamp_type == "LogAppendTime"
        self.keeps_plain = (
            self.compression_type in ("producer", "uncompressed") and not self.log_append_time
        )
        self.batch_size_max = min(self.max_message_bytes, self.segment_bytes)
        plain_count_max = self.max_message_bytes // _PLAIN_RECORD_SIZE
        self.compressed_count_max = self.max_compressed_records or plain_count_max
        self.header_count_max = self.max_batch_headers or plain_count_max
        age_ms = self.segment_ms
        self.segment_age_ms = min(age_ms, self.max_compaction_lag_ms) if self.compact else age_ms

    def replace(self, **values: object) -> LogConfig:
        return LogConfig(**{**{name: getattr(self, name) for name in DEFAULTS}, **values})
