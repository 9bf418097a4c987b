"""Options for the many short-lived JVMs that tests start.

Such a JVM mainly loads classes and compiles. It therefore compiles with the first of Java's two
compilers only, and maps its classes from an archive if `tests.support.class_archives` has made one.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.tools import TOOLS

OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def archive(kind: str) -> Path:
    """Return the path of the archive of a kind: "broker" or "tools" of Kafka, or "spark"."""
    return TOOLS / f"{kind}.jsa"


def options(kind: str) -> list[str]:
    """Return the command-line options for a JVM of that kind."""
    found = archive(kind)
    # Java ignores an archive of another Java or other jars, with a warning that -Xlog turns off.
    shared = [f"-XX:SharedArchiveFile={found}", "-Xlog:disable"] if found.exists() else []
    return [*OPTIONS, *shared]
