"""`.embedlog_log_dirs`: a file in each of a broker's data directories that names the others.

    version=1
    first=/data                 in all but the first: the path of the first, which opens the broker
    <directory.id> /disk2       in the first: a line for each other one, even if it is missing

Without the file, a broker that is opened without one of its directories would not miss it, and
would create the logs there again, empty, in another directory. Programs that read a directory
without opening the broker learn from the file that they would not see all logs. A malformed file is
a ConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import uuid_from_text, uuid_to_text
from embedlog.errors import ConfigError
from embedlog.runtime.files import Files, write_whole
from embedlog.storage import paths

_VERSION = "version=1"
_FIRST = "first="


def read_others(files: Files, directory: str) -> dict[bytes, str]:
    """Return the paths of the directories beside this first one, by their ids."""
    found = {}
    for line in _lines(files, directory):
        id, space, path = line.partition(" ")
        if space and not line.startswith(_FIRST):
            try:
                found[uuid_from_text(id)] = path
            except ValueError as error:
                raise ConfigError(f"{directory}/{paths.LOG_DIRS}: {line!r}: {error}") from None
    return found


def read_first(files: Files, directory: str) -> str | None:
    """Return the path of the broker's first directory; None if this is the first."""
    for line in _lines(files, directory):
        if line.startswith(_FIRST):
            return line.removeprefix(_FIRST)
    return None


def write_others(files: Files, directory: str, others: Mapping[bytes, str], *, sync: bool) -> None:
    """Store the other directories in the first one; remove the file if there are none."""
    lines = [f"{uuid_to_text(id)} {path}" for id, path in others.items()]
    _write(files, directory, lines, sync=sync)


def write_first(files: Files, directory: str, first: str, *, sync: bool) -> None:
    """Store the path of the first directory in another one."""
    _write(files, directory, [_FIRST + first], sync=sync)


def refuse_one_of_more(files: Files, directory: str) -> None:
    """Raise ConfigError if the broker has further directories: a reader would miss their logs."""
    first = read_first(files, directory)
    if first is not None:
        raise ConfigError(
            f"{directory} is one of several log directories of a broker, the first is {first}: it "
            "is read through the broker"
        )
    others = read_others(files, directory)
    if others:
        raise ConfigError(
            f"{directory} is one of several log directories of a broker, the others are "
            f"{', '.join(others.values())}: they are read through the broker"
        )


def _write(files: Files, directory: str, lines: list[str], *, sync: bool) -> None:
    path = f"{directory}/{paths.LOG_DIRS}"
    if not lines:
        if files.stat(path) is not None:
            files.remove(path)
        return
    content = "".join(f"{line}\n" for line in (_VERSION, *lines)).encode()
    if files.stat(path) is None or files.read(path) != content:
        write_whole(files, path, content, sync=sync)


def _lines(files: Files, directory: str) -> list[str]:
    path = f"{directory}/{paths.LOG_DIRS}"
    if files.stat(path) is None:
        return []
    lines = files.read(path).decode("utf-8", "replace").splitlines()
    if lines[:1] != [_VERSION]:
        raise ConfigError(f"{path}: {lines[:1]}, expected {_VERSION}")
    return lines[1:]
