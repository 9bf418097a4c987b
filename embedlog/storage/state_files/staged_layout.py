"""The names of files that processes exchange in a data directory.

    embedlog-commit                   the last commit, and each application's last version
    embedlog-commit.done .undone      the next content of `embedlog-commit`: one of the two
    .exchange/staged/<job>/           files that tasks write, and that a manifest names
    .exchange/inbox/<id>              manifests that the owner has not taken yet
    .exchange/taken/<id>              manifests that the owner works on
    .exchange/answers/<id>            the outcome of each manifest
    .exchange/pins/<id>               offsets that retention keeps for a while
    .exchange/refused/<part>-<id>     manifests and pins that the owner could not understand

`.exchange` exists only while it is used: Apache Kafka refuses a data directory that holds a
directory which is no partition's. It tolerates the file `embedlog-commit`.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, FileStat, make_directory, parent, remove_tree
from embedlog.storage import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T

COMMIT = "embedlog-commit"
EXCHANGE = ".exchange"
STAGED = "staged"
INBOX = "inbox"
TAKEN = "taken"
ANSWERS = "answers"
PINS = "pins"
REFUSED = "refused"
_ATTEMPTS = 100
_REFUSED_MAX = 100
"""Further refused files are removed."""
_NAME_SIZE_MAX = 200


def commit_file(data: str) -> str:
    """Return the path of `embedlog-commit`, the record of the last commit."""
    return f"{data}/{COMMIT}"


def exchange(data: str) -> str:
    """Return the directory through which processes exchange files."""
    return f"{data}/{EXCHANGE}"


def part(data: str, name: str) -> str:
    """Return the directory of that name in the exchange directory."""
    return f"{data}/{EXCHANGE}/{name}"


def has_manifests(files: Files, data: str) -> bool:
    """Whether there is a manifest without an answer."""
    return bool(names_in(files, data, INBOX) or names_in(files, data, TAKEN))


def names_in(files: Files, data: str, name: str) -> list[str]:
    """Return the names of the complete files in one part of the exchange; [] if it is missing."""
    try:
        if not is_real(files, data, part(data, name)):
            return []
        names = files.list(part(data, name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [each for each in names if not each.endswith((paths.TEMPORARY, paths.DELETED))]


def inside(files: Files, directory: str, make: Callable[[], T], *, sync: bool = False) -> T:
    """Make the directory if it is missing, then call `make`, which makes something in it.

    If the directory vanishes in between, try again: any process may remove an empty one. `sync` is
    passed to `make_directory`.
    """
    for _ in range(_ATTEMPTS):
        try:
            make_directory(files, directory, sync=sync)
            return make()
        except (FileNotFoundError, FileExistsError):
            continue  # FileExistsError: the directory existed, and was gone at the second look
    return make()


def is_real(files: Files, data: str, path: str) -> bool:
    """Whether `path`, a directory in the exchange, and those above it are directories, not links.

    Otherwise a path in it may lead anywhere.
    """
    while len(path) > len(data):
        stat = files.stat(path)
        if stat is None or not stat.is_directory:
            return False
        path = parent(path)
    return True


def staged_file(files: Files, data: str, path: str) -> FileStat:
    """Return the facts of a staged file; `path` is relative to the staging area.

    Raises:
        CorruptRecord: it is missing, no regular file, or reached through a link.
    """
    whole = f"{part(data, STAGED)}/{path}"
    stat = files.stat(whole)
    if stat is None or not stat.is_file or not is_real(files, data, parent(whole)):
        raise CorruptRecord(whole, 0, "missing, no regular file, or reached through a link")
    return stat


def set_aside(files: Files, data: str, name: str, id: str) -> None:
    """Move a file that cannot be used out of one part of the exchange; `health` lists it then.

    Raises:
        OSError: it can be neither moved nor removed.
    """
    path, refused = f"{part(data, name)}/{id}", part(data, REFUSED)
    target = f"{refused}/{name}-{id[:_NAME_SIZE_MAX]}"
    if len(names_in(files, data, REFUSED)) < _REFUSED_MAX and files.stat(target) is None:
        inside(files, refused, lambda: files.rename(path, target))
        return
    stat = files.stat(path)
    if stat is not None and stat.is_directory:
        remove_tree(files, path)
    else:
        files.remove(path)
