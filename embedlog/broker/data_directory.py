"""Whether a data directory may be used, and the making of one that is missing.

One that is made is for this user only, unless `embedlog.data.dir.mode` says otherwise. One that is
there must be empty, or a data directory of embedlog or Apache Kafka: in any other, names that look
like ours might be taken for ours.
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.files import make_directory
from embedlog.storage.log_directories import shown, why_foreign
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

TYPE_CHECKING = False
if TYPE_CHECKING:
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
"""What tells a data directory; the last one is in that of a new broker of Kafka."""

_EVERYWHERE = {"lost+found", ".DS_Store", ".gitignore", ".gitkeep"}
"""What may be in a directory that its owner calls empty."""


def prepare(files: Files, directory: str, mode: str) -> None:
    """Make the data directory if it is missing, with `mode` (octal); refuse somebody else's.

    Raises:
        ConfigError: it holds files, and none that tells a data directory.
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


def _is_log(files: Files, directory: str, name: str) -> bool:
    path = f"{directory}/{name}"
    if parse_log_directory(name) is None or why_foreign(files, path):
        return False
    return bool(files.list(path))
