"""Files and directories that no log needs any more: of deleted logs and removed segments."""

from __future__ import annotations

from errno import EDQUOT, ENOSPC

from embedlog.storage import paths
from embedlog.storage.directory.partition_directories import remove_log
from embedlog.storage.events import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.runtime.randomness import Random
    from embedlog.storage.directory.owned_directory import OwnedDirectory


class Leftovers:
    """Removes the leftovers of one data directory. Views of removed files stay readable.

    The next opening of the directory removes the rest.
    """

    def __init__(self, directory: OwnedDirectory, random: Random) -> None:
        self._directory = directory
        self._random = random
        self._directories: list[str] = []
        self._files: list[tuple[int, list[str]]] = []
        """(monotonic time, files to remove at that time)."""

    def put_away(self, topic_partition: TopicPartition) -> None:
        """Rename the directory of a log, so that `remove` removes it."""
        files, parent = self._directory.files, self._directory.path
        path = f"{parent}/{paths.deleted_log_name(topic_partition, self._random.uuid())}"
        directory = paths.log_directory(parent, topic_partition)
        try:
            files.rename(directory, path)
        except OSError as error:
            if error.errno not in (ENOSPC, EDQUOT):
                raise
            remove_log(files, directory)  # a full disk refused the rename: remove now
        else:
            self._directories.append(path)

    def remove(self) -> None:
        """Remove the renamed directories; if one cannot be removed, the next call tries again."""
        for path in self._directories.copy():
            try:
                remove_log(self._directory.files, path)
                self._directories.remove(path)
            except (OSError, ValueError) as error:  # ValueError: another thread was faster
                events.debug("%s cannot be removed yet: %s", path, error)

    def add_files(self, useless: list[str], due_ms: int) -> None:
        """Add files that `remove_due` removes from `due_ms` on, a monotonic time."""
        self._files.append((due_ms, useless))

    def remove_due(self, now_ms: int) -> int | None:
        """Remove the files that are due; return when the next are due, None if there are none."""
        due = [useless for due_ms, useless in self._files if due_ms <= now_ms]
        self._files = [entry for entry in self._files if entry[0] > now_ms]
        for useless in due:
            self.remove_files(useless)
        return min((due_ms for due_ms, _ in self._files), default=None)

    def remove_files(self, useless: list[str]) -> None:
        """Remove these files. An error, even for a missing file, is only logged."""
        for path in useless:
            try:
                self._directory.files.remove(path)
            except OSError as error:
                events.debug("%s cannot be removed yet: %s", path, error)
