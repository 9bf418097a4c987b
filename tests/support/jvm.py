"""The JVMs that tests start: there are many, and none of them lives long.

They load classes and compile, more than anything else. So they compile with the first of the two
compilers only, and map the classes that a JVM of their kind loads from an archive, where there is
one: `tests.support.class_archives`.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.tools import TOOLS

OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def archive(kind: str) -> Path:
    """Where the archive of a kind is: "broker" and "tools" of Kafka, "spark"."""
    return TOOLS / f"{kind}.jsa"


def options(kind: str) -> list[str]:
    """What a JVM of that kind is started with."""
    found = archive(kind)
    # One that another Java or other jars have made is left alone, and said to be: not here.
    shared = [f"-XX:SharedArchiveFile={found}", "-Xlog:disable"] if found.exists() else []
    return [*OPTIONS, *shared]
