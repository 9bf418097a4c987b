"""The marker that a data directory was closed cleanly, `.kafka_cleanshutdown`.

It is JSON; Kafka writes version and brokerEpoch and ignores what else is there:

    {"version":0,"brokerEpoch":-1,"synced":true,"bootId":"0d9b..."}

`synced` says that everything was synced before the marker was written. If not, the marker holds
only until the machine restarts, when the page cache may have lost what was never synced. So a stop
at durability `os` needs no sync, and is still told from a loss of power.
"""

from __future__ import annotations

from embedlog.runtime.files import write_whole
from embedlog.storage.paths import CLEAN_SHUTDOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import Files


def take_marker(files: Files, directory: str, *, sync: bool) -> bool:
    """Remove the marker; return whether there was one that still holds."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    try:
        content = files.read(path)
    except FileNotFoundError:
        return False
    files.remove(path)
    if sync:
        # Otherwise the marker could come back after a loss of power, beside a torn log.
        files.sync_directory(directory)
    # Kafka's own holds: it syncs first. An empty one may be ours, with its bytes lost.
    is_foreign = b'"version"' in content and b'"bootId"' not in content
    is_same_boot = files.boot_id != "" and f'"bootId":"{files.boot_id}"'.encode() in content
    return is_foreign or is_same_boot or b'"synced":true' in content


def was_locked_in_this_boot(files: Files, lock_path: str) -> bool:
    """Whether the directory's last owner ran since the machine started.

    Then nothing that it wrote is missing, however it ended. The lock file names its owner.
    """
    try:
        return files.boot_id != "" and files.boot_id.encode() in files.read(lock_path).split()
    except FileNotFoundError:
        return False


def write_marker(files: Files, directory: str, *, synced: bool) -> None:
    """Say that the directory is closed cleanly; the last write to it."""
    content = (
        f'{{"version":0,"brokerEpoch":-1,"synced":{"true" if synced else "false"},'
        f'"bootId":"{files.boot_id}"}}'
    )
    write_whole(files, f"{directory}/{CLEAN_SHUTDOWN}", content.encode(), sync=synced)
