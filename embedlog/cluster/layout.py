"""How many brokers a data directory has. `cluster.properties` marks a directory of several:

version=1
brokers=3          number at creation; the metadata lists brokers that joined later
first.node.id=1    number of the first broker; the others count up. 1 if the line is missing
"""

from __future__ import annotations

from embedlog.errors import ConfigError
from embedlog.runtime.files import Files, make_directory, write_whole
from embedlog.storage import paths
from embedlog.storage.directory.meta_properties import read_properties

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_OF_ONE = "meta.properties"
_FIRST_ID = 1


def broker_count(files: Files, directory: str, asked: int | None, racks: Sequence[str]) -> int:
    """Return the number of brokers to open in `directory`.

    `asked` is the caller's number. Without it: the directory's, else the number of `racks`, else 1.

    Raises:
        ConfigError: `asked` is no positive number, `racks` does not fit, the directory was made for
            one broker and not for several (or the reverse), or belongs to one broker of several.
    """
    if asked is not None and (not isinstance(asked, int) or asked < 1):
        raise ConfigError(f"brokers={asked!r}: expected a positive number")
    if isinstance(racks, str) or not all(isinstance(rack, str) for rack in racks):
        raise ConfigError(f"racks={racks!r}: expected a list of names, one for each broker")
    refuse_one_of_several(files, directory)
    present = _present(files, directory)
    count = asked or present or max(1, len(racks))
    if present == 1 and count > 1:
        raise ConfigError(f"{directory} belongs to one broker: it cannot be opened with {count}")
    if present is not None and present > 1 and count == 1:
        raise ConfigError(
            f"{directory} belongs to {present} brokers, and cannot be opened with one"
        )
    if racks and count == 1:
        raise ConfigError("racks are for several brokers; for one broker set broker.rack")
    if len(racks) not in (0, count):
        raise ConfigError(f"{len(racks)} racks for {count} brokers: expected one for each")
    return count


def refuse_one_of_several(files: Files, directory: str) -> None:
    """Refuse to open one broker of several without the others.

    Raises:
        ConfigError: the directory belongs to one broker of several.
    """
    whole = directory.rpartition("/")[0] or ("/" if directory.startswith("/") else ".")
    if files.stat(f"{whole}/{paths.CLUSTER_PROPERTIES}") is not None:
        raise ConfigError(f"{directory} belongs to one broker of several: open {whole}")


def first_node_id(files: Files, directory: str, asked: int) -> int:
    """Return the number of the first broker: `asked` for a new directory.

    Raises:
        ConfigError: the directory's first broker is neither `asked` nor is this the default number.
    """
    if _present(files, directory) is None:
        return asked
    path = f"{directory}/{paths.CLUSTER_PROPERTIES}"
    present = int(read_properties(files, path).get("first.node.id", _FIRST_ID))
    if asked not in (present, _FIRST_ID):
        raise ConfigError(
            f"node.id={asked}: the brokers of {directory} are numbered from {present} on"
        )
    return present


def mark_several(
    files: Files, directory: str, count: int, first_id: int, *, mode: int, sync: bool
) -> None:
    """Mark the directory as one of several brokers; create it if missing.

    Raises:
        ConfigError: the directory holds other files.
    """
    if _present(files, directory) is not None:
        return
    if files.stat(directory) is None:
        make_directory(files, directory, sync=sync, mode=mode)
    names = [name for name in files.list(directory) if not name.startswith(".")]
    if names:
        raise ConfigError(
            f"{directory} is no data directory: it holds {', '.join(sorted(names)[:3])}. Name an "
            "empty directory or a new one"
        )
    content = f"version=1\nbrokers={count}\nfirst.node.id={first_id}\n".encode()
    write_whole(files, f"{directory}/{paths.CLUSTER_PROPERTIES}", content, sync=sync)


def _present(files: Files, directory: str) -> int | None:
    """Return the number of brokers that the directory was made for; None for a new directory."""
    path = f"{directory}/{paths.CLUSTER_PROPERTIES}"
    if files.stat(path) is not None:
        values = read_properties(files, path)
        if values.get("version") != "1":
            raise ConfigError(f"{path}: version {values.get('version')!r}, expected 1")
        if values.get("brokers", "").isdecimal():
            return int(values["brokers"])
        raise ConfigError(f"{path}: the number of brokers is missing")
    return 1 if files.stat(f"{directory}/{_OF_ONE}") is not None else None
