"""`meta.properties`: the node and the cluster of a data directory, as Kafka writes it.

version=1
cluster.id=...          22 characters
node.id=1
directory.id=...        22 characters; each directory of a node has its own
"""

from __future__ import annotations

from embedlog.common import uuid_from_text, uuid_to_text
from embedlog.errors import ConfigError
from embedlog.runtime.files import Files, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime import Runtime

_NAME = "meta.properties"


class MetaProperties:
    """The cluster and the id of a data directory. `cluster_id` is "" if there is no file.

    `is_whole`: the file has all entries, the directory's id included.
    """

    __slots__ = ("cluster_id", "directory_id", "is_whole")

    def __init__(self, cluster_id: str, directory_id: bytes, *, is_whole: bool = False) -> None:
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        self.is_whole = is_whole


def read(runtime: Runtime, directory: str, node_id: int) -> MetaProperties:
    """Read the file; make a new directory id if it has none.

    Raises:
        ConfigError: the directory belongs to another node, or the file cannot be understood.
    """
    values = check(runtime.files, directory, node_id)
    if values is None:
        return MetaProperties("", runtime.random.uuid())
    directory_id = values.get("directory.id")
    found = runtime.random.uuid() if directory_id is None else uuid_from_text(directory_id)
    cluster_id = values.get("cluster.id", "")
    return MetaProperties(cluster_id, found, is_whole=bool(cluster_id and directory_id))


def check(
    files: Files, directory: str, node_id: int, cluster_id: str | None = None
) -> dict[str, str] | None:
    """Return the entries of the file, None if it is missing. `cluster_id` is the expected one.

    Raises:
        ConfigError: the directory belongs to another node or cluster, or the file cannot be
            understood.
    """
    path = f"{directory}/{_NAME}"
    if files.stat(path) is None:
        return None
    values = read_properties(files, path)
    if values.get("version") != "1":
        raise ConfigError(f"{path}: version {values.get('version')!r}, expected 1")
    if values.get("node.id") != str(node_id):
        raise ConfigError(
            f"{path}: the directory belongs to node {values.get('node.id')!r}, this is {node_id}"
        )
    if "directory.id" in values:
        try:
            uuid_from_text(values["directory.id"])
        except ValueError as error:
            raise ConfigError(f"{path}: directory.id: {error}") from None
    known = values.get("cluster.id")
    if known and cluster_id and known != cluster_id:
        raise ConfigError(
            f"{path}: the directory belongs to cluster {known}, but expected was {cluster_id}"
        )
    return values


def node_id_of(runtime: Runtime, directory: str) -> str | None:
    """Return the node's id as the file has it, or None."""
    return read_properties(runtime.files, f"{directory}/{_NAME}").get("node.id")


def write(
    runtime: Runtime, directory: str, node_id: int, properties: MetaProperties, *, sync: bool
) -> None:
    """Replace the file; with `sync` it survives a loss of power."""
    lines = (
        "version=1",
        f"cluster.id={properties.cluster_id}",
        f"node.id={node_id}",
        f"directory.id={uuid_to_text(properties.directory_id)}",
        "",
    )
    content = "\n".join(lines).encode()
    write_whole(runtime.files, f"{directory}/{_NAME}", content, sync=sync)


def read_properties(files: Files, path: str) -> dict[str, str]:
    """Return the entries of a properties file; {} if it is missing."""
    try:
        content = files.read(path)
    except FileNotFoundError:
        return {}
    properties = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and not name.startswith(("#", "!")):
            properties[name.strip()] = value.strip()
    return properties
