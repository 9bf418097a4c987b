"""The directories of partitions' logs in a data directory. Other directories are left alone."""

from __future__ import annotations

from embedlog.runtime.files import Files, remove_tree, write_whole
from embedlog.storage import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.storage.log.log import Log

_NAMED_MAX = 3


def find_logs(files: Files, directory: str) -> set[TopicPartition]:
    """Return the partitions with a log directory, found by its name."""
    found = map(paths.parse_log_directory, files.list(directory))
    return {each for each in found if each is not None}


def remove_deleted_logs(files: Files, directory: str) -> None:
    """Remove the directories of logs whose deletion was cut short."""
    for name in files.list(directory):
        if paths.is_deleted_log(name):
            remove_tree(files, f"{directory}/{name}")


def why_foreign(files: Files, path: str) -> str:
    """Return the reason why no log can be at `path`, in words; "" if a log is there or can be."""
    stat = files.stat(path)
    if stat is None:
        return ""
    if not stat.is_directory:
        return f"{path} is a symbolic link or a file, and no directory"
    names = files.list(path)
    if not names or any(map(paths.is_of_a_log, names)):
        return ""
    return f"{path} holds {shown(names)}, and no log"


def mark_newer(log: Log) -> None:
    """Store a marker beside the log: another data directory has an older state of it.

    Poison the log if that fails.
    """
    try:
        write_whole(log.files, f"{log.directory}/{paths.MOVED_HERE}", b"", sync=True)
    except OSError as error:
        log.health.poison(error)


def shown(names: list[str]) -> str:
    """Return some of the names, and how many more there are."""
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
