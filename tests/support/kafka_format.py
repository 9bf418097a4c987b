"""Format the data directories of Kafka brokers with one run of Kafka's tool for many brokers.

The tool is a JVM of its own, which costs a third of a broker's start. Its files are the same for
all brokers of a cluster id and of equal roles, apart from two ids in `meta.properties`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import uuid4

from embedlog.common import uuid_to_text

_OF_THE_FORMAT = (
    "controller.quorum",
    "log.dir",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "unstable.feature",
)
"""The begins of settings that decide what the tool writes, or where."""
_formatted: dict[tuple[str, ...], tempfile.TemporaryDirectory[str]] = {}


def format_data(
    data: Path,
    run_tool: Callable[[], object],
    *,
    kind: tuple[str, ...],
    node: int,
    settings: Iterable[str],
) -> None:
    """Format the only log directory of a node; `run_tool` runs Kafka's tool.

    Nodes with equal `kind`, cluster id and roles, get copies of the first directory. A directory
    with a `meta.properties` is left as it is, as the tool does with `--ignore-formatted`. With
    `settings` that concern the tool, it runs in any case.
    """
    if any(name.startswith(_OF_THE_FORMAT) for name in settings):
        run_tool()
        return
    if (data / "meta.properties").exists():
        return
    if data.exists():
        run_tool()  # it has files of a test
        return
    if kind not in _formatted:
        run_tool()
        kept = _formatted[kind] = tempfile.TemporaryDirectory(prefix="embedlog-format-")
        shutil.copytree(data, kept.name, dirs_exist_ok=True)
        return
    shutil.copytree(_formatted[kind].name, data)
    meta = data / "meta.properties"
    text = re.sub(r"(?m)^node\.id=.*$", f"node.id={node}", meta.read_text())
    directory_id = uuid_to_text(uuid4().bytes)
    meta.write_text(re.sub(r"(?m)^directory\.id=.*$", f"directory.id={directory_id}", text))
