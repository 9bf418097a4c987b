"""A data directory that belongs to this process: its lock, and the marker of a clean end."""

from __future__ import annotations

from embedlog.runtime.files import make_directory
from embedlog.storage import paths
from embedlog.storage.directory.log_directories import find_logs
from embedlog.storage.state_files.clean_shutdown import (
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

    from embedlog.runtime.files import Files


class OwnedDirectory:
    """The directory at `path`, from the making of this object until `release`.

    `clean`: it was closed cleanly before, or is new. `same_boot`: the machine has not restarted
    since. `is_volatile`: its content is in memory. `is_durable`: a loss of power takes nothing.
    """

    def __init__(self, files: Files, path: str, durability: str) -> None:
        """Take the directory, making it if it is missing.

        Raises:
            DirectoryLocked: another process has it open; the message names the process.
        """
        self.files = files
        self.path = path
        self.id = b""
        """Its directory.id in meta.properties, once that was read."""
        self.is_volatile = durability == "memory"
        self.is_durable = durability == "fsync"
        make_directory(files, path, sync=not self.is_volatile)
        self.same_boot = was_written_in_this_boot(files, path)
        self._lock = files.lock(f"{path}/{paths.LOCK}")
        try:
            self._was_synced = holds_marker(files, path, in_any_boot=True)
            self.clean = take_marker(files, path, sync=self.is_durable)
            self.found = find_logs(files, path)
            """The partitions that had a log at that time."""
        except BaseException:
            self.release()
            raise
        self.clean = self.clean or not self.found

    @property
    def is_held(self) -> bool:
        """True if it belongs to this process. False once it is released, and after a fork."""
        return self._lock.is_held

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Store the addresses for processes that find the directory locked."""
        self._lock.note_addresses(addresses)

    def end_recovery(self) -> None:
        """Note that every used log was loaded since the directory was taken."""
        if not self.is_volatile:
            end_recovery(self.files, self.path)

    def note_power_loss(self) -> None:
        """Tell the next opener that unsynced data is gone."""
        note_power_loss(self.files, self.path)

    def mark_clean(self, *, is_synced: bool, is_all_loaded: bool) -> None:
        """Mark the directory as clean: every log is closed.

        With `is_synced` the loaded logs are synced; the others are as they were found.
        """
        synced = is_synced and self.is_durable and (self._was_synced or is_all_loaded)
        write_marker(self.files, self.path, synced=synced)

    def release(self) -> None:
        self._lock.close()
