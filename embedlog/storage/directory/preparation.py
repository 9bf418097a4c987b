"""Prepare one data directory before a broker takes it: check that it may be used, or make it.

A new directory is for this user only, unless `embedlog.data.dir.mode` says otherwise. An existing
one must be empty, or a data directory of embedlog or Apache Kafka: in any other directory,
unrelated files might have the names that embedlog uses.
"""

from __future__ import annotations

from embedlog.errors import ConfigError, DirectoryLocked
from embedlog.runtime.files import Files, is_directory, make_directory
from embedlog.runtime.pending import Pending
from embedlog.storage.directory import meta_properties
from embedlog.storage.directory.partition_directories import shown, why_foreign
from embedlog.storage.paths import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    METADATA_LOG,
    RECOVERY_POINTS,
    parse_log_directory,
)
from embedlog.storage.state_files import staged_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T
    from embedlog.runtime import Runtime

_MARKERS = {
    LOCK,
    META_PROPERTIES,
    CLEAN_SHUTDOWN,
    RECOVERY_POINTS,
    LOG_START_OFFSETS,
    HIGH_WATERMARKS,
    CLEANER_OFFSETS,
    "bootstrap.checkpoint",
}
"""Names that identify a data directory. The last one is in the directory of a new Kafka broker."""

_EVERYWHERE = {"lost+found", ".DS_Store", ".gitignore", ".gitkeep"}
"""A directory counts as empty even if it holds files of these names."""

_QUORUM_STATE = "quorum-state"
_KRAFT_SNAPSHOT = ".checkpoint"
"""Names that only Kafka's controller gives to files beside its metadata log."""

_COMMITTER_MS = 1_000
_LOOK_MS = 10


def prepare(files: Files, directory: str, mode: str) -> None:
    """Make the data directory if it is missing, with `mode` (octal)."""
    if files.stat(directory) is None:
        make_directory(files, directory, sync=True, mode=int(mode, 8))


def look(files: Files, directory: str, node_id: int, cluster_id: str | None = None) -> None:
    """Refuse a directory that node `node_id` cannot open. Nothing is written.

    `cluster_id` is the cluster that the directory is expected to belong to, None for any.

    Raises:
        ConfigError: the directory belongs to another program, node or cluster.
    """
    if files.stat(directory) is None:
        return
    refuse_foreign(files, directory)
    if is_of_kraft(files, directory):
        raise ConfigError(
            f"{directory} is a data directory of Apache Kafka: {METADATA_LOG} is the metadata log "
            f"of its controller, which embedlog does not use. open_reader, verify, dump and tail "
            f"read the topics in it"
        )
    meta_properties.check(files, directory, node_id, cluster_id)


def refuse_foreign(files: Files, directory: str, *, is_empty_fine: bool = True) -> None:
    """Refuse a directory of unrelated files.

    Raises:
        ConfigError: the directory holds files, but none that identifies a data directory; or it is
            empty, unless `is_empty_fine`.
    """
    names = [name for name in files.list(directory) if name not in _EVERYWHERE]
    if any(name in _MARKERS or _is_log(files, directory, name) for name in names):
        return
    if not names and is_empty_fine:
        return
    if not is_empty_fine:
        held = f"it holds {shown(names)}" if names else "it is empty"
        raise ConfigError(f"{directory} is no data directory: {held}")
    raise ConfigError(
        f"{directory} is no data directory: it holds {shown(names)}. Name one that is empty or "
        f"does not exist. To use this one all the same, make an empty file {LOCK} in it"
    )


def is_of_kraft(files: Files, directory: str) -> bool:
    """Whether the directory has the metadata log of a controller of Apache Kafka."""
    log = f"{directory}/{METADATA_LOG}"
    if not is_directory(files, log):
        return False
    names = files.list(log)
    return any(name == _QUORUM_STATE or name.endswith(_KRAFT_SNAPSHOT) for name in names)


def after_committers(runtime: Runtime, directory: str, take: Callable[[], T]) -> T:
    """Call `take`, which takes a directory; wait up to a second if a committer has it open.

    If no broker has a directory open, a process that commits staged files opens it for some 50 ms.
    That must not prevent a broker from starting.

    Raises:
        DirectoryLocked: a process has it open; a committer, only if it still has it after a second.
    """
    until_ms = runtime.clock.monotonic_ms() + _COMMITTER_MS
    while True:
        try:
            return take()
        except DirectoryLocked:
            is_exchanging = runtime.files.stat(staged_layout.exchange(directory)) is not None
            if not is_exchanging or runtime.clock.monotonic_ms() >= until_ms:
                raise
        runtime.scheduler.wait(Pending(), _LOOK_MS)


def _is_log(files: Files, directory: str, name: str) -> bool:
    path = f"{directory}/{name}"
    if parse_log_directory(name) is None or why_foreign(files, path):
        return False
    return bool(files.list(path))
