"""The one place that makes and parses the file names of a data directory.

In the data directory:

    .lock                         names the process that has the directory open
    .kafka_cleanshutdown          present while the directory is cleanly closed
    .embedlog_unrecovered         present until the recovery after a loss of power is complete
    meta.properties               the node and the cluster that the directory belongs to
    .embedlog_log_dirs            the other data directories of the broker, if it has several
    *-checkpoint                  one offset per partition
    *-checkpoint.sealed           the same with a checksum
    gaps-below-checkpoint.sealed  the offsets below which logs may have gaps, see `log/gaps.py`
    cluster.properties            marks the directory of a cluster of several brokers: it holds no
                                  other file, and one data directory for each broker
    <topic>-<partition>           one log
    <topic>-<partition>.<32 hex>-delete   a log about to be removed
    <topic>-<partition>.<32 hex>-future   the copy of a log that moves here, see `relocation`

In the directory of a log, %020d being an offset:

    %020d.log                     a segment, named by its first offset
    %020d.index .timeindex .txnindex      its indexes
    %020d.snapshot                producer state up to that offset
    leader-epoch-checkpoint, .sealed      where each leader epoch begins
    partition.metadata            the topic's id
    published-offset              how far other processes may read, see `published_offset`
    copied-here                   another directory may have the log as well, see `relocation`
    moved-here                    another directory has an older state of the log
    *.cleaned .swap               a segment that compaction writes, see `cleaner.output`
    *.deleted                     a file that no segment needs, removed after a while
    %020d.%010d.quarantine        bytes that recovery took out of that segment at that position; or
                                  a copy of the segment before a salvage, numbered from 0
"""

from __future__ import annotations

from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
UNRECOVERED = ".embedlog_unrecovered"
META_PROPERTIES = "meta.properties"
LOG_DIRS = ".embedlog_log_dirs"
CLUSTER_PROPERTIES = "cluster.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
SEALED = ".sealed"
"""Suffix of a checkpoint that has a checksum."""
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
SEALED_LEADER_EPOCHS = LEADER_EPOCHS + SEALED
METADATA_LOG = "__cluster_metadata-0"
"""Directory of the metadata log, of embedlog's and of Kafka's."""
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
GAPS = "gaps-below-checkpoint"
"""The checkpoint of `log/gaps.py`. It has only a sealed form, no text."""
PARTITION_METADATA = "partition.metadata"
PUBLISHED_OFFSET = "published-offset"
COPIED_HERE = "copied-here"
MOVED_HERE = "moved-here"

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
QUARANTINE = ".quarantine"
DELETED = ".deleted"
CLEANED = ".cleaned"
REWRITTEN = ".rewritten" + CLEANED
"""Suffix of a segment that a maintenance job writes. It differs from CLEANED, because the cleaner
may write the same segment at the same time."""
SWAP = ".swap"
TEMPORARY = ".tmp"

_OF_A_LOG = (
    LEADER_EPOCHS,
    SEALED_LEADER_EPOCHS,
    PARTITION_METADATA,
    PUBLISHED_OFFSET,
    COPIED_HERE,
    MOVED_HERE,
)

SIDECARS = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

_DELETE = "-delete"
_FUTURE = "-future"
_NAME_SIZE_MAX = 255
_OFFSET_DIGITS = 20
_UUID_DIGITS = 32


def broker_directory(whole: str, node_id: int) -> str:
    """Return the data directory of one broker in `whole`, the directory of several brokers."""
    return f"{whole}/broker-{node_id}"


def log_directory(data: str, partition: TopicPartition) -> str:
    """Return the directory of a partition's log."""
    return f"{data}/{partition[0]}-{partition[1]}"


def deleted_log_name(partition: TopicPartition, uuid: bytes) -> str:
    """Return the name that a log's directory gets before its removal: at most 255 characters."""
    suffix = f"-{partition[1]}.{uuid.hex()}{_DELETE}"
    return partition[0][: _NAME_SIZE_MAX - len(suffix)] + suffix


def is_deleted_log(name: str) -> bool:
    """Whether this is the name of a log that embedlog or Kafka was about to remove."""
    return _parse_with(_DELETE, name) is not None


def future_log_name(partition: TopicPartition, uuid: bytes) -> str:
    """Return the name of a log's copy, until the copy takes the log's own name."""
    return f"{partition[0]}-{partition[1]}.{uuid.hex()}{_FUTURE}"


def parse_future_log(name: str) -> TopicPartition | None:
    """Return the partition whose log was to move to a directory of that name, or None."""
    return _parse_with(_FUTURE, name)


def _parse_with(suffix: str, name: str) -> TopicPartition | None:
    former, dot, uuid = name.removesuffix(suffix).rpartition(".")
    if not dot or not name.endswith(suffix):
        return None
    is_hex = len(uuid) == _UUID_DIGITS and not uuid.strip("0123456789abcdef")
    return parse_log_directory(former) if is_hex else None


def parse_log_directory(name: str) -> TopicPartition | None:
    """Return the partition whose log a directory of that name holds, None for other names."""
    topic, separator, number = name.rpartition("-")
    if not separator or not topic or not number.isdecimal() or not number.isascii():
        return None
    return TopicPartition(topic, int(number))


def is_of_a_log(name: str) -> bool:
    """Whether a file of that name belongs in the directory of a log."""
    return parse_offset(name) is not None or name.removesuffix(TEMPORARY) in _OF_A_LOG


def segment_file(directory: str, base_offset: int, suffix: str = LOG) -> str:
    """Return the path of one file of a segment, or of the snapshot at an offset."""
    return f"{directory}/{base_offset:020d}{suffix}"


def quarantine_file(directory: str, base_offset: int, position: int) -> str:
    """Return the path where recovery keeps the bytes of a segment from `position` on."""
    return f"{directory}/{base_offset:020d}.{position:010d}{QUARANTINE}"


def parse_offset(name: str) -> int | None:
    """Return the offset at the beginning of a segment's or snapshot's file name, or None."""
    digits = name[:_OFFSET_DIGITS]
    if len(digits) == _OFFSET_DIGITS and digits.isdecimal() and digits.isascii():
        return int(digits)
    return None


def segment_bases(names: Iterable[str]) -> list[int]:
    """Return the first offsets of the segments among these file names, in order."""
    found = (parse_offset(name) for name in names if name.endswith(LOG))
    return sorted(offset for offset in found if offset is not None)
