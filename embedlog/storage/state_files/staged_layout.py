"""The names of what processes exchange in a data directory.

    embedlog-commit                   the last commit, and what was committed before
    embedlog-commit.done .undone      what it will say next
    .exchange/staged/<job>/           files that tasks write, and the manifest names
    .exchange/inbox/<id>              manifests that nobody has taken yet
    .exchange/taken/<id>              those that the owner is at
    .exchange/answers/<id>            what became of them
    .exchange/pins/<id>               what retention leaves alone for a while

The directory is there only while somebody uses it: a broker of Apache Kafka refuses a data
directory with a directory in it that is no partition's. The file it does not mind.
"""

from __future__ import annotations

from embedlog.runtime.files import make_directory
from embedlog.storage import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.common import T
    from embedlog.runtime.files import Files

COMMIT = "embedlog-commit"
EXCHANGE = ".exchange"
STAGED = "staged"
INBOX = "inbox"
TAKEN = "taken"
ANSWERS = "answers"
PINS = "pins"
_ATTEMPTS = 100


def commit_file(data: str) -> str:
    """Where the last commit is recorded."""
    return f"{data}/{COMMIT}"


def exchange(data: str) -> str:
    """The directory through which processes exchange files."""
    return f"{data}/{EXCHANGE}"


def part(data: str, name: str) -> str:
    """One of the directories in it."""
    return f"{data}/{EXCHANGE}/{name}"


def has_manifests(files: Files, data: str) -> bool:
    """Is there a manifest that nobody has answered?"""
    return bool(names_in(files, data, INBOX) or names_in(files, data, TAKEN))


def names_in(files: Files, data: str, name: str) -> list[str]:
    """The names in one part of the exchange, of whole files only; none when it is not there."""
    try:
        names = files.list(part(data, name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [each for each in names if not each.endswith((paths.TEMPORARY, paths.DELETED))]


def inside(files: Files, directory: str, make: Callable[[], T], *, sync: bool = False) -> T:
    """Make something in a directory, and the directory first; `sync` as for `make_directory`.

    Once more if the directory vanishes meanwhile: whoever sees that it is empty may remove it.

    Raises:
        OSError: the disk refuses.
    """
    for _ in range(_ATTEMPTS):
        try:
            make_directory(files, directory, sync=sync)
            return make()
        except (FileNotFoundError, FileExistsError):
            continue  # the latter when it was there, and is gone at the second look
    return make()
