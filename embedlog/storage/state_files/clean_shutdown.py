"""The marker of a cleanly closed data directory, `.kafka_cleanshutdown`.

It is JSON. Kafka writes version and brokerEpoch and ignores other fields:

    {"version":0,"brokerEpoch":-1,"synced":true,"bootId":"0d9b..."}

`synced` is true if everything was synced before the marker was written. If not, the marker is valid
only until the machine restarts, because unsynced bytes in the page cache do not survive a loss of
power. So a stop at durability `os` needs no sync, and a loss of power after it is still noticed.
"""

from __future__ import annotations

from embedlog.runtime.files import Files, write_whole
from embedlog.storage.paths import CLEAN_SHUTDOWN, LOCK, UNRECOVERED


def holds_marker(files: Files, directory: str, *, in_any_boot: bool = False) -> bool:
    """Return whether the directory has a valid marker.

    With `in_any_boot`, a marker that a restart of the machine makes invalid does not count.
    """
    try:
        content = files.read(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return False
    # Kafka's marker is valid: Kafka syncs first. An empty file is not: its bytes may be lost.
    is_foreign = b'"version"' in content and b'"bootId"' not in content
    is_same_boot = files.boot_id != "" and f'"bootId":"{files.boot_id}"'.encode() in content
    return is_foreign or (is_same_boot and not in_any_boot) or b'"synced":true' in content


def take_marker(files: Files, directory: str, *, sync: bool) -> bool:
    """Remove the marker, if there is one; return whether it was valid."""
    holds = holds_marker(files, directory)
    try:
        files.remove(f"{directory}/{CLEAN_SHUTDOWN}")
    except FileNotFoundError:
        return False
    if sync:
        # Without the sync a loss of power could bring the marker back, beside a torn log.
        files.sync_directory(directory)
    return holds


def was_written_in_this_boot(files: Files, directory: str) -> bool:
    """Whether the directory has every write to it, except the end of a write that a kill cut.

    True if the last owner ran since the machine started: the lock file names its boot. But False if
    that owner found the directory after a loss of power and did not complete the recovery: the file
    UNRECOVERED marks this until `end_recovery`.

    Requires: the lock file does not name a new owner yet.
    """
    return _names_this_boot(files, directory) and (files.stat(f"{directory}/{UNRECOVERED}") is None)


def begin_recovery(files: Files, directory: str) -> None:
    """Mark a directory after a loss of power, until `end_recovery`.

    The mark is not synced: after another loss of power the lock file names an earlier boot, which
    suffices. Requires: the directory had a lock file, which does not name the new owner yet.
    """
    if not _names_this_boot(files, directory) and not holds_marker(files, directory):
        files.open(f"{directory}/{UNRECOVERED}", create=True).close()


def _names_this_boot(files: Files, directory: str) -> bool:
    try:
        owner = files.read(f"{directory}/{LOCK}")
    except FileNotFoundError:
        return False
    return files.boot_id != "" and files.boot_id.encode() in owner.split()


def note_power_loss(files: Files, directory: str) -> None:
    """Make the directory look as after a loss of power, though the machine runs on.

    This empties the lock file, so that it names no boot; that needs no space on a full disk.
    """
    file = files.open(f"{directory}/{LOCK}")
    try:
        file.truncate(0)
    finally:
        file.close()


def end_recovery(files: Files, directory: str) -> None:
    """Record that recovery after a loss of power is complete."""
    path = f"{directory}/{UNRECOVERED}"
    if files.stat(path) is not None:
        files.remove(path)


def write_marker(files: Files, directory: str, *, synced: bool) -> None:
    """Mark the directory as cleanly closed. No write to the directory may follow."""
    content = (
        f'{{"version":0,"brokerEpoch":-1,"synced":{"true" if synced else "false"},'
        f'"bootId":"{files.boot_id}"}}'
    )
    write_whole(files, f"{directory}/{CLEAN_SHUTDOWN}", content.encode(), sync=synced)
