"""Foreign programs the tests drive: kcat, node with kafkajs, a JVM with Apache Kafka's jars.

`python -m tests.support.tools` installs what is missing: Debian packages (as root), npm and Maven
packages by name into `.tools/`. A test asks with `need_...()`: without the tool it skips on a
developer's machine and fails in CI, where the command has just installed everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = Path(os.environ.get("EMBEDLOG_TOOLS", ROOT / ".tools"))
BROKER_VERSION = "4.4.0"
TOOLS_VERSION = "4.3.0"  # the newest release whose command-line tools are published
KAFKAJS = ("kafkajs@2.2.4", "snappyjs@0.7.0", "lz4-napi@2.10.0", "fzstd@0.1.1")

DEBIAN = {"kcat": "kcat", "java": "default-jre-headless", "mvn": "maven", "npm": "npm"}

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencyManagement><dependencies><dependency><groupId>org.apache.kafka</groupId>
<artifactId>kafka-tools-api</artifactId><version>{tools}</version></dependency></dependencies>
</dependencyManagement><dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>"
    "</dependency>"
)

JARS = {
    "broker": [
        ("org.apache.kafka", "kafka_2.13", BROKER_VERSION),
        ("org.slf4j", "slf4j-simple", "1.7.36"),
    ],
    "tools": [
        ("org.apache.kafka", "kafka_2.13", TOOLS_VERSION),
        ("org.apache.kafka", "kafka-tools", TOOLS_VERSION),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ],
}


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing: `python -m tests.support.tools` installs it")
    pytest.skip(f"{what} is missing: `python -m tests.support.tools` installs it")


def need_kcat() -> str:
    """The path of kcat."""
    found = shutil.which("kcat")
    if found is None:
        _missing("kcat")
    assert found is not None
    return found


def need_kafkajs() -> dict[str, str]:
    """The environment in which `node` finds kafkajs."""
    modules = TOOLS / "node" / "node_modules"
    if shutil.which("node") is None or not (modules / "fzstd").is_dir():
        _missing("node with kafkajs")
    return {**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}


def need_jars(kind: str) -> str:
    """The class path of Kafka's `broker` or `tools`."""
    folder = TOOLS / kind
    if shutil.which("java") is None or not (folder / ".complete").exists():
        _missing(f"a JVM with Kafka's {kind}")
    return f"{folder}/*"


def install(kinds: tuple[str, ...] = ("debian", "kafkajs", "tools", "broker")) -> None:
    """Install what is missing; says what it does."""
    if "debian" in kinds:
        _install_debian()
    if "kafkajs" in kinds and not (TOOLS / "node" / "node_modules" / "fzstd").is_dir():
        (TOOLS / "node").mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix",
             str(TOOLS / "node"), *KAFKAJS)  # fmt: skip
    for kind in ("tools", "broker"):
        if kind in kinds and not (TOOLS / kind / ".complete").exists():
            _install_jars(kind)


def _install_debian() -> None:
    packages = [package for program, package in DEBIAN.items() if shutil.which(program) is None]
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"not root on Debian: install these yourself: {' '.join(packages)}", file=sys.stderr)
        return
    _run("apt-get", "update", "-qq")
    _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def _install_jars(kind: str) -> None:
    folder = TOOLS / kind
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        pom = Path(directory) / "pom.xml"
        dependencies = "".join(DEPENDENCY.format(*row) for row in JARS[kind])
        pom.write_text(POM.format(tools=TOOLS_VERSION, dependencies=dependencies))
        _run("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={folder}")  # fmt: skip
    (folder / ".complete").touch()


def _run(*command: str) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    install(tuple(sys.argv[1:]) or ("debian", "kafkajs", "tools", "broker"))
