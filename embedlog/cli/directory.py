"""The data directory that a command is about, and the partitions of it."""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.storage import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files


def data_directory(files: Files, path: str) -> str:
    """The data directory at `path`.

    Raises:
        ConfigError: it is none.
    """
    from embedlog.broker.data_path import existing_directory

    directory = existing_directory(files, path)
    names = files.list(directory)
    if paths.META_PROPERTIES not in names and not any(map(paths.parse_log_directory, names)):
        raise ConfigError(f"{path}: not a data directory")
    return directory


def is_chosen(topic: str | None, partition: int | None) -> Callable[[TopicPartition], bool]:
    """Which partitions the options name; None names all."""

    def holds(which: TopicPartition) -> bool:
        return topic in (None, which.topic) and partition in (None, which.partition)

    return holds
