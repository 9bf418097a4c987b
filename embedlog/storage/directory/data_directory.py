"""Checking that a data directory may be used, and making a missing one.

A new one is for this user only, unless `embedlog.data.dir.mode` says otherwise. An existing one
must be empty, or a data directory of embedlog or Apache Kafka: in any other, unrelated files might
have our names.
"""

from __future__ import annotations

from embedlog.errors import ConfigError, DirectoryLocked
from embedlog.runtime.files import make_directory
from embedlog.runtime.pending import Pending
from embedlog.storage.directory.log_directories import shown, why_foreign
from embedlog.storage.paths import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_START_OFFSETS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_log_directory,
)
from embedlog.storage.state_files import staged_layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T
    from embedlog.runtime import Runtime
    from embedlog.runtime.files import Files

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
"""Names that identify a data directory; a new broker of Kafka has the last one."""

_EVERYWHERE = {"lost+found", ".DS_Store", ".gitignore", ".gitkeep"}
"""Names that may be in a directory that its owner calls empty."""

_COMMITTER_MS = 1_000
_LOOK_MS = 10


def prepare(files: Files, directory: str, mode: str) -> None:
    """Make the data directory if it is missing, with `mode` (octal).

    Raises:
        ConfigError: it holds files, and none that identifies a data directory.
    """
    if files.stat(directory) is None:
        make_directory(files, directory, sync=True, mode=int(mode, 8))
        return
    names = [name for name in files.list(directory) if name not in _EVERYWHERE]
    if not names or any(name in _MARKERS or _is_log(files, directory, name) for name in names):
        return
    raise ConfigError(
        f"{directory} is no data directory: it holds {shown(names)}. Name one that is empty or "
        f"does not exist. To use this one all the same, make an empty file {LOCK} in it"
    )


def after_committers(runtime: Runtime, directory: str, take: Callable[[], T]) -> T:
    """Take a directory, waiting up to a second for a committer that has it.

    If nobody has a directory open, a committer of staged files opens it for some 50 ms: that must
    not keep its usual owner from starting.

    Raises:
        DirectoryLocked: somebody has it all the same.
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
