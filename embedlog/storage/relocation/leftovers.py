"""Two directories with the same log, after a crash in a move: choosing the log's.

copied-here     the crash came before the former one was removed, and nothing was appended to
                either before; later only the directory that the metadata names is served
moved-here      the former one could not be removed, and is older
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
    """Remove the leftovers of moves. Requires: no log is loaded.

    `directory_of` returns the id of the directory that the metadata names for a partition.
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
    """Return the manager whose log counts; None if the two do not come from a move."""
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
    """Return the known topic ids.

    If a topic was deleted and created again, the logs of the directories may belong to different
    topics.
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
    """Remove the marks of a move: there is only one directory with the log."""
    for name in _MARKS:
        path = f"{directory}/{name}"
        try:
            if files.stat(path) is not None:
                files.remove(path)
        except OSError as error:
            events.debug("%s cannot be removed yet: %s", path, error)


def _path(manager: LogManager, topic_partition: TopicPartition) -> str:
    return paths.log_directory(manager.directory.path, topic_partition)
