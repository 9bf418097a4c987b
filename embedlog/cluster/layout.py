"""How many brokers a data directory is of: `cluster.properties` tells one of several.

version=1
brokers=3          how many there were at first; those that joined later are in the metadata
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.files import make_directory, write_whole
from embedlog.storage import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime.files import Files

_OF_ONE = "meta.properties"


def broker_count(files: Files, directory: str, asked: int | None, racks: Sequence[str]) -> int:
    """How many brokers to open in `directory`, where `asked` were asked for (None: as it is).

    Raises:
        ConfigError: the directory is of another number of brokers, or of one of several, or there
            is no such number.
    """
    if asked is not None and (not isinstance(asked, int) or asked < 1):
        raise ConfigError(f"brokers={asked!r}: expected a positive number")
    if isinstance(racks, str) or not all(isinstance(rack, str) for rack in racks):
        raise ConfigError(f"racks={racks!r}: expected a list of names, one for each broker")
    refuse_one_of_several(files, directory)
    present = _present(files, directory)
    count = asked or present or max(1, len(racks))
    if present == 1 and count > 1:
        raise ConfigError(f"{directory} is of one broker, and cannot be opened with {count}")
    if present is not None and present > 1 and count == 1:
        raise ConfigError(f"{directory} is of {present} brokers, and cannot be opened with one")
    if racks and count == 1:
        raise ConfigError("racks are for several brokers; that of one is its broker.rack")
    if len(racks) not in (0, count):
        raise ConfigError(f"{len(racks)} racks for {count} brokers: expected one for each")
    return count


def refuse_one_of_several(files: Files, directory: str) -> None:
    """A broker of several is not opened without the others.

    Raises:
        ConfigError: it is such a broker's directory.
    """
    whole = directory.rpartition("/")[0] or ("/" if directory.startswith("/") else ".")
    if files.stat(f"{whole}/{paths.CLUSTER_PROPERTIES}") is not None:
        raise ConfigError(f"{directory} is of one broker of several: open {whole}")


def mark_several(files: Files, directory: str, count: int, *, mode: int, sync: bool) -> None:
    """Make the directory one of several brokers, unless it is.

    Raises:
        ConfigError: it holds something else.
    """
    if _present(files, directory) is not None:
        return
    if files.stat(directory) is None:
        make_directory(files, directory, sync=sync, mode=mode)
    names = [name for name in files.list(directory) if not name.startswith(".")]
    if names:
        raise ConfigError(
            f"{directory} is no data directory: it holds {', '.join(sorted(names)[:3])}. Name one "
            "that is empty or does not exist"
        )
    content = f"version=1\nbrokers={count}\n".encode()
    write_whole(files, f"{directory}/{paths.CLUSTER_PROPERTIES}", content, sync=sync)


def _present(files: Files, directory: str) -> int | None:
    """How many brokers the directory was made for; None for a new one."""
    path = f"{directory}/{paths.CLUSTER_PROPERTIES}"
    if files.stat(path) is not None:
        for line in files.read(path).decode("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name == "brokers" and value.isdecimal():
                return int(value)
        raise ConfigError(f"{path}: it does not say how many brokers there are")
    return 1 if files.stat(f"{directory}/{_OF_ONE}") is not None else None
