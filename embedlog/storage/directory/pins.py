"""The offsets from which retention must keep records, for readers and archives."""

from __future__ import annotations

from embedlog.storage.events import events
from embedlog.storage.state_files.archived_offsets import read_archived
from embedlog.storage.state_files.retention_pins import read_pins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.common import TopicPartition
    from embedlog.storage.directory.owned_directory import OwnedDirectory
    from embedlog.storage.log.log import Log


class Pins:
    """Reads the offsets from which retention must keep records, for the loaded logs.

    They come from `retention_pins` and, for topics that wait for archives, `archived_offsets`.
    """

    def __init__(self, directory: OwnedDirectory, logs: Mapping[TopicPartition, Log]) -> None:
        self._directory = directory
        self._logs = logs
        self._known: dict[TopicPartition, int] = {}
        self._is_failing = False

    def read(self, wall_ms: int) -> dict[TopicPartition, int]:
        """Return the first offset that must stay, for each partition that has one.

        If the disk refuses, return the last known offsets: retention must go on, because it makes
        room.
        """
        if self._directory.is_volatile:
            return {}
        files, path = self._directory.files, self._directory.path
        logs = list(self._logs.values())
        waiting = [log.topic_partition for log in logs if log.config.retention_archived]
        try:
            found = read_pins(files, path, wall_ms)
            archived = read_archived(files, path) if waiting else {}
        except OSError as error:
            if not self._is_failing:
                events.warning("the pins of readers cannot be read, the last ones hold: %s", error)
            self._is_failing = True
            return {**dict.fromkeys(waiting, 0), **self._known}
        self._is_failing = False
        for key in waiting:
            offset = archived.get(key, 0)
            found[key] = min(offset, found.get(key, offset))
        self._known = found
        return found
