"""Two directories with the same log, after a crash in a move: which of them is the log's."""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.state_files import partition_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.common import TopicPartition
    from embedlog.storage.log_manager import LogManager


def settle(managers: Sequence[LogManager], *, is_all: bool) -> None:
    """Remove the log that another has taken the place of. Requires: no log is loaded.

    `is_all`: none of the broker's directories is missing: then nothing need say any more which is
    the newer one of two.

    Raises:
        KafkaStorageError, OSError: the disk refuses.
    """
    holders: dict[TopicPartition, list[LogManager]] = {}
    for manager in managers:
        for topic_partition in manager.partitions():
            holders.setdefault(topic_partition, []).append(manager)
    for topic_partition, several in holders.items():
        moved = [each for each in several if _is_moved_here(each, topic_partition)]
        if len(moved) != 1 or len(_topic_ids(several, topic_partition)) > 1:
            continue
        for manager in several:
            if manager is not moved[0]:
                events.info("%s has moved from %s", topic_partition, manager.directory.path)
                manager.delete(topic_partition)
                manager.directory.files.sync_directory(manager.directory.path)
        if is_all:
            moved[0].directory.files.remove(_marker(moved[0], topic_partition))


def _is_moved_here(manager: LogManager, topic_partition: TopicPartition) -> bool:
    return manager.directory.files.stat(_marker(manager, topic_partition)) is not None


def _topic_ids(managers: Sequence[LogManager], topic_partition: TopicPartition) -> set[bytes]:
    """Those that are known: a topic that was deleted and made anew may have a log in one of them
    that is not the other's.
    """
    found = set()
    for manager in managers:
        directory = paths.log_directory(manager.directory.path, topic_partition)
        path = f"{directory}/{paths.PARTITION_METADATA}"
        try:
            found.add(partition_metadata.decode(manager.directory.files.read(path), path))
        except (FileNotFoundError, CorruptRecord):
            continue
    return found


def _marker(manager: LogManager, topic_partition: TopicPartition) -> str:
    directory = paths.log_directory(manager.directory.path, topic_partition)
    return f"{directory}/{paths.MOVED_HERE}"
