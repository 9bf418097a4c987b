"""A data directory that belongs to this process: its lock, and the marker of a clean end."""

from __future__ import annotations

from embedlog.runtime.files import Files, make_directory
from embedlog.storage import paths
from embedlog.storage.directory.partition_directories import find_logs, remove_deleted_logs
from embedlog.storage.state_files.clean_shutdown import (
    begin_recovery,
    end_recovery,
    holds_marker,
    note_power_loss,
    take_marker,
    was_written_in_this_boot,
    write_marker,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class OwnedDirectory:
    """The data directory at `path`. It belongs to this process until `release`.

    Nothing in it changes before `begin`, so that a caller can look into it first, and refuse it.

    `clean`: it was closed cleanly before, or is new. `same_boot`: the machine has not restarted
    since its last use. `is_volatile`: its content is in memory. `is_durable`: its content survives
    a loss of power.
    """

    def __init__(self, files: Files, path: str, durability: str, *, begins: bool = True) -> None:
        """Take the directory; make it if it is missing. `begins`: call `begin` at once.

        Raises:
            DirectoryLocked: another process has it open; the message names the process.
        """
        self.files = files
        self.path = path
        self.id = b""
        """The directory.id in meta.properties, once the file was read."""
        self.is_volatile = durability == "memory"
        self.is_durable = durability == "fsync"
        self.has_begun = False
        make_directory(files, path, sync=not self.is_volatile)
        self._was_used = files.stat(f"{path}/{paths.LOCK}") is not None
        self._lock = files.lock(f"{path}/{paths.LOCK}", names_owner=False)
        try:
            self.same_boot = was_written_in_this_boot(files, path)
            self._was_synced = holds_marker(files, path, in_any_boot=True)
            self.clean = holds_marker(files, path)
            self.found = find_logs(files, path)
            """The partitions that had a log when the directory was taken."""
            if begins:
                self.begin()
        except BaseException:
            self.release()
            raise
        self.clean = self.clean or not self.found

    def begin(self) -> None:
        """Make the first changes: name the owner, take the marker, remove half-deleted logs.

        May be called again. Requires: no log was written before.
        """
        if self.has_begun:
            return
        if self._was_used:
            begin_recovery(self.files, self.path)
        self._lock.name_owner()
        take_marker(self.files, self.path, sync=self.is_durable)
        remove_deleted_logs(self.files, self.path)
        self.has_begun = True

    @property
    def is_held(self) -> bool:
        """True if the directory belongs to this process. False after `release` and after a fork."""
        return self._lock.is_held

    def note_addresses(self, addresses: Sequence[str]) -> None:
        self._lock.note_addresses(addresses)

    def end_recovery(self) -> None:
        """Record that recovery is complete: every log in use has been loaded."""
        if not self.is_volatile:
            end_recovery(self.files, self.path)

    def note_power_loss(self) -> None:
        """Mark the directory, so that the next opening takes unsynced data for lost."""
        note_power_loss(self.files, self.path)

    def mark_clean(self, *, is_synced: bool, is_all_loaded: bool) -> None:
        """Mark the directory as clean. Requires: every log is closed.

        With `is_synced` the loaded logs are synced; logs that were not loaded are as they were when
        the directory was taken.
        """
        synced = is_synced and self.is_durable and (self._was_synced or is_all_loaded)
        write_marker(self.files, self.path, synced=synced)

    def release(self) -> None:
        self._lock.close()
