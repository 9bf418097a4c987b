"""The path that `embedlog.open` gets, a directory or memory, and defaults that depend on it.

The functions raise ConfigError for a path or a durability that cannot be used.
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime import Runtime, real_runtime
from embedlog.storage import paths
from embedlog.storage.log_config import DURABILITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import StrPath

    from embedlog.config.broker_config import BrokerConfig
    from embedlog.runtime.files import Files


IN_MEMORY = ":memory:"
"""The path of a cluster in memory, as sqlite3 spells it."""


def data_directory(path: StrPath | None) -> str | None:
    """Return the directory that `path` names; None means memory.

    A leading "~" is the home directory. Text that looks like an address is refused; write
    "./localhost:9092" for a directory of that name.
    """
    if path is None:
        return None
    if isinstance(path, str):
        if path.strip() == IN_MEMORY:
            return None
        if looks_like_address(path):
            raise ConfigError(
                f"{path!r} is an address, and not a directory: to use a cluster at an address give "
                f"it to embedlog.Producer, Consumer or Admin; to serve at one call listen of a "
                f'cluster; a directory of this name is "./{path}"'
            )
        text = path
    else:
        text = _text_of(path)
    if not text:
        raise ConfigError("the path is empty: None means a cluster in memory")
    _check_text(text)
    from embedlog.runtime.os_files import expand_home, with_slashes

    text = with_slashes(expand_home(text) if text.startswith("~") else text)
    return text.rstrip("/") or "/"


def further_directories(path: str | None, log_dirs: Sequence[StrPath]) -> tuple[str, ...]:
    """Return the further directories of a broker, `log_dirs`, as paths.

    Its first directory is at `path`, None for memory. No directory may equal another one or lie
    within it.
    """
    if not isinstance(log_dirs, list | tuple):
        raise ConfigError(f"log_dirs={log_dirs!r}: expected a list of directories")
    from embedlog.runtime.os_files import absolute

    whole = {} if path is None else {absolute(path): path}
    found = []
    for each in log_dirs:
        directory = data_directory(each)
        if directory is None or "\n" in directory or "," in directory:
            raise ConfigError(f"log_dirs={log_dirs!r}: {each!r} is no directory")
        place = absolute(directory)
        for other, name in whole.items():
            if other == place:
                raise ConfigError(f"{directory} is named twice as a log directory")
            outer, inner = sorted((other, place), key=len)
            if inner.startswith(outer.rstrip("/") + "/"):
                raise ConfigError(f"log directories {name} and {directory}: one is in the other")
        whole[place] = directory
        found.append(directory)
    return tuple(found)


def named_beside(path: str | None, named: Sequence[str] | None) -> Sequence[str]:
    """Return the directories that log.dirs (`named`) lists besides the one at `path`.

    Return () if log.dirs does not name `path` itself: then it is the setting of another program.
    """
    if path is None or not named or len(named) < 2:
        return ()
    from embedlog.runtime.os_files import absolute

    others = [each for each in named if absolute(data_directory(each) or "") != absolute(path)]
    return others if len(others) < len(named) else ()


def existing_directory(
    files: Files, path: StrPath, *, is_whole: bool = True, is_empty_fine: bool = True
) -> str:
    """Return the absolute path of the existing data directory at `path`, of one broker.

    With `is_whole`, refuse a directory that is one of several of its broker. Refuse one of another
    program, as `open` does, and an empty one unless `is_empty_fine`.
    """
    from embedlog.runtime.files import is_directory
    from embedlog.storage.directory.preparation import refuse_foreign

    given = data_directory(path)
    directory = given and files.absolute(given)
    if directory is None or not is_directory(files, directory):
        raise ConfigError(f"{path}: not a directory")
    if files.stat(f"{directory}/{paths.CLUSTER_PROPERTIES}") is not None:
        raise ConfigError(
            f"{path} is of several brokers: name the directory of one, {path}/broker-1"
        )
    refuse_foreign(files, directory, is_empty_fine=is_empty_fine)
    if is_whole and files.stat(f"{directory}/{paths.LOG_DIRS}") is not None:
        from embedlog.storage.state_files.log_dirs import refuse_one_of_more

        refuse_one_of_more(files, directory)
    return directory


def looks_like_address(text: str) -> bool:
    """Whether the text is "host:port", several of them, or one with "PLAINTEXT://" before it.

    >>> [looks_like_address(text) for text in ("localhost:9092", ":9092", "./a:1", "data", "C:")]
    [True, True, False, False, False]
    """
    for each in text.split(","):
        _, scheme, rest = each.strip().rpartition("://")
        host, colon, port = rest.rpartition(":")
        if not scheme and (not colon or "/" in host or "\\" in host):
            return False
        if not port.isdecimal():
            return False
    return True


def _check_text(text: str) -> None:
    """Refuse text that no file system takes as a path."""
    try:
        is_name = b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise ConfigError(f"{text!r} is no path: it holds a character that no file name can have")


def _text_of(path: StrPath) -> str:
    text = path.__fspath__() if hasattr(path, "__fspath__") else None
    if isinstance(text, str):
        return text
    if isinstance(path, int) and not isinstance(path, bool):
        raise ConfigError(
            f"{path!r} is a number, and not a path: to serve at a port call "
            f"cluster.listen(port={path})"
        )
    if isinstance(path, dict):
        raise ConfigError(f"a path was expected, not {path!r}: settings are given as config=")
    raise ConfigError(f"{path!r} is not a path: expected text, an os.PathLike of text, or None")


def durability_of(path: str | None, asked: str | None, config: BrokerConfig) -> str:
    """Return the default durability of topics: `asked`, else the setting, else by `path`."""
    level: str | None = asked or config.embedlog_durability
    if level is None:
        return "memory" if path is None else "fsync"
    if level not in DURABILITIES:
        raise ConfigError(f"durability {level!r}: expected one of {', '.join(DURABILITIES)}")
    if path is None and level != "memory":
        raise ConfigError(f"durability {level!r} needs a path: there is no disk in memory")
    return level


def runtime_of(path: str | None) -> Runtime:
    """Return clock, files and threads of a cluster in a directory, or in memory."""
    if path is not None:
        return real_runtime()
    from embedlog.runtime.memory_files import MemoryFiles

    return real_runtime(MemoryFiles())
