"""The data directory of a command, and its chosen partitions."""

from __future__ import annotations

from collections.abc import Callable

from embedlog.common import TopicPartition
from embedlog.runtime.files import Files
from embedlog.storage import paths


def data_directory(files: Files, path: str) -> str:
    """Return the data directory at `path`, which may be one of several of a broker.

    Raises:
        ConfigError: `path` is no data directory.
    """
    from embedlog.storage.directory.data_path import existing_directory

    return existing_directory(files, path, is_whole=False, is_empty_fine=False)


def other_directories(files: Files, directory: str) -> list[str]:
    """Return the broker's other log directories, as far as this directory names them."""
    if files.stat(f"{directory}/{paths.LOG_DIRS}") is None:
        return []
    from embedlog.storage.state_files.log_dirs import read_first, read_others

    first = read_first(files, directory)
    return list(read_others(files, directory).values()) if first is None else [first]


def is_chosen(topic: str | None, partition: int | None) -> Callable[[TopicPartition], bool]:
    """Return a predicate for the partitions of the options; None matches all."""

    def holds(which: TopicPartition) -> bool:
        return topic in (None, which.topic) and partition in (None, which.partition)

    return holds
