"""The directories of partitions' logs in a data directory. Other directories are left alone."""

from __future__ import annotations

from errno import ENOTDIR

from embedlog.runtime.files import Files, remove_tree, write_whole
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.log_health import HARMLESS_ERRORS

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
            remove_log(files, f"{directory}/{name}")


def remove_log(files: Files, path: str) -> None:
    """Remove the directory of a log. Of a symbolic link to a log, remove only the link, as Kafka
    does.
    """
    stat = files.stat(path)
    if stat is None or not stat.links_to_directory:
        remove_tree(files, path)
    elif not why_foreign(files, path):
        files.remove(path)
        events.warning("the link %s was removed; the directory behind it remains", path)


def why_unreachable(files: Files, path: str) -> OSError | None:
    """Return why the log at `path` cannot be served; None if it can, as far as names and rights
    tell, or if the directory is of something else.

    The check lists the directory and opens the last segment.
    """
    try:
        bases = paths.segment_bases(files.list(path))
        if bases:
            files.open(paths.segment_file(path, bases[-1])).close()
            return None
        stat = files.stat(path)
        foreign = why_foreign(files, path) if stat and stat.links_to_directory else ""
    except (FileNotFoundError, NotADirectoryError):
        foreign = why_foreign(files, path)  # "" if it was removed meanwhile
    except OSError as error:
        return None if error.errno in HARMLESS_ERRORS else error
    return OSError(ENOTDIR, foreign) if foreign else None


def why_foreign(files: Files, path: str) -> str:
    """Return the reason why no log can be at `path`, in words; "" if a log is there or can be.

    As in Kafka, `path` may be a symbolic link to the directory of a log.

    Raises:
        OSError: the directory cannot be read.
    """
    stat = files.stat(path)
    if stat is None:
        return ""
    if not stat.is_directory and not stat.links_to_directory:
        return f"{path} is a file, or a symbolic link to one or to nothing, and no directory"
    names = files.list(path)
    if not names and stat.links_to_directory:
        return f"{path} is a symbolic link to an empty directory, and no log"
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
