"""After a crash in a move, two data directories may hold the same log: remove the useless copy.

The log that a move has copied holds one of two mark files:

copied-here     The former directory was perhaps not removed yet. Both logs were equal at the
                commit. The data directory that the metadata names counts, else the former one.
moved-here      The former directory could not be removed, and the log continued here: this
                directory counts, because the former one is older.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.state_files import partition_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import TopicPartition
    from embedlog.runtime.files import Files
    from embedlog.storage.directory.log_manager import LogManager

_MARKS = (paths.COPIED_HERE, paths.MOVED_HERE)


def settle(
    managers: Sequence[LogManager], directory_of: Callable[[TopicPartition], bytes | None]
) -> None:
    """Remove the leftovers of moves from all data directories. Requires: no log is loaded.

    `directory_of` returns the id of the data directory that the metadata names for a partition.
    """
    holders: dict[TopicPartition, list[LogManager]] = {}
    for manager in managers:
        for topic_partition in manager.partitions():
            holders.setdefault(topic_partition, []).append(manager)
    for topic_partition, several in holders.items():
        if len(several) > 1:
            try:
                _settle(topic_partition, several, directory_of(topic_partition))
            except (OSError, KafkaStorageError) as error:
                events.error(
                    "%s: the leftovers of a move cannot be removed: %s", topic_partition, error
                )


def is_settled(topic_partition: TopicPartition, managers: Sequence[LogManager]) -> bool:
    """Whether marks tell which of a partition's logs `settle` keeps."""
    is_marked = any(_marked(name, topic_partition, managers) for name in _MARKS)
    return is_marked and len(_topic_ids(managers, topic_partition)) < 2


def _settle(
    topic_partition: TopicPartition, managers: Sequence[LogManager], directory_id: bytes | None
) -> None:
    newest = _newest(topic_partition, managers, directory_id)
    if newest is None or len(_topic_ids(managers, topic_partition)) > 1:
        return
    for manager in managers:
        if manager is not newest:
            path = manager.directory.path
            events.info("%s: the leftovers of a move in %s are removed", topic_partition, path)
            manager.delete(topic_partition)
            manager.directory.files.sync_directory(path)
    remove_marks(newest.directory.files, _path(newest, topic_partition))


def _newest(
    topic_partition: TopicPartition, managers: Sequence[LogManager], directory_id: bytes | None
) -> LogManager | None:
    """Return the manager whose log counts; None if the mark files do not decide: both logs stay."""
    moved = _marked(paths.MOVED_HERE, topic_partition, managers)
    copied = _marked(paths.COPIED_HERE, topic_partition, managers)
    if not copied and not moved:
        return None
    known = [each for each in managers if each.directory.id == directory_id]
    former = [each for each in managers if each not in copied]
    for found in (moved, known, former):
        if len(found) == 1:
            return found[0]
    return None


def _marked(
    name: str, topic_partition: TopicPartition, managers: Sequence[LogManager]
) -> list[LogManager]:
    return [
        each
        for each in managers
        if each.directory.files.stat(f"{_path(each, topic_partition)}/{name}") is not None
    ]


def _topic_ids(managers: Sequence[LogManager], topic_partition: TopicPartition) -> set[bytes]:
    """Return the topic ids that the partition has in these managers' directories.

    If there are two, the topic was deleted and created again: the logs are of two topics.
    """
    found = set()
    for manager in managers:
        path = f"{_path(manager, topic_partition)}/{paths.PARTITION_METADATA}"
        try:
            found.add(partition_metadata.decode(manager.directory.files.read(path), path))
        except (FileNotFoundError, CorruptRecord):
            continue
    return found


def remove_marks(files: Files, directory: str) -> None:
    """Remove the mark files of a move. Requires: only one data directory holds the log."""
    for name in _MARKS:
        path = f"{directory}/{name}"
        try:
            if files.stat(path) is not None:
                files.remove(path)
        except OSError as error:
            events.debug("%s cannot be removed yet: %s", path, error)


def _path(manager: LogManager, topic_partition: TopicPartition) -> str:
    return paths.log_directory(manager.directory.path, topic_partition)
