"""kafka-streams-groups, in all its forms, says the same about embedlog as about Apache Kafka."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import embedlog
from tests.golden.brokers import PLUGIN
from tests.golden.record import with_plugin
from tests.interop.groups.serving import Serve
from tests.interop.streams.instance import Instance, compiled
from tests.support.jvm import OPTIONS
from tests.support.kafka import real_kafka
from tests.support.tools import need_jars

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "0",
    PLUGIN: "tests.golden.shelf.Shelf",  # it keeps what --topology shows
}
GROUP = ("--group", "counter")
LINES = 50
SECONDS_MAX = 60
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MEMBER_ID = re.compile(r"(?<= )[\w-]{22}(?= )")
REPARTITIONED = re.compile(r"^(counter\s+\S+-repartition\s+\d).*$", re.MULTILINE)
"""Offsets behind markers of transactions, whose number depends on time."""

NO_LAG = re.compile(r"^counter\s+\S+\s+\d\s+0\s*$", re.MULTILINE)

Session = list[tuple[str, list[str]]]


class Tool:
    """The tool for one broker, and the normalised output of its calls."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.session: Session = []

    def __call__(self, *arguments: str) -> str:
        """Run the tool, and keep its output."""
        text = self.run(*arguments)
        self.session.append((" ".join(arguments), normal(text, self._address)))
        return text

    def run(self, *arguments: str) -> str:
        """Run the tool."""
        command = ["java", "-Xmx256m", *OPTIONS, "-cp", need_jars("applications")]
        command += ["org.apache.kafka.tools.streams.StreamsGroupCommand"]
        done = subprocess.run(
            [*command, "--bootstrap-server", self._address, *arguments],
            text=True, timeout=SECONDS_MAX, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.stdout

    def until(self, wanted: Callable[[str], bool], *arguments: str) -> None:
        """Run the tool until its output is the wanted one."""
        deadline = time.monotonic() + SECONDS_MAX
        while not wanted(text := self.run(*arguments)):
            assert time.monotonic() < deadline, text


def normal(text: str, address: str) -> list[str]:
    """Return the lines of an output without random parts, and with single spaces."""
    text = REPARTITIONED.sub(r"\1", UUID.sub("<uuid>", text.replace(address, "<address>")))
    text = re.sub(r"\((\d+)\)", "(<node>)", text)
    text = MEMBER_ID.sub("<member>", text)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    # Stack traces name lines of the tool only.
    return sorted(line for line in lines if not line.startswith("at "))


def lacking(lines: list[str], other: list[str]) -> list[str]:
    """Return the lines that the other output does not have."""
    return [line for line in lines if line not in other]


def session_with(address: str, classes: str, folder: Path) -> Session:
    """Describe a group with a member, then change and delete it without members."""
    with embedlog.Admin(address) as admin:
        admin.create_topics([embedlog.NewTopic(name, 2) for name in ("lines", "counts")]).check()
    with embedlog.Producer(address) as producer:
        for number in range(2 * LINES):
            producer.send("lines", b"ash elm", partition=number % 2)
    tool = Tool(address)
    instance = Instance(classes, address, folder, threads=1)
    try:
        tool.until(lambda text: "Stable" in text, "--list", "--state")
        # Both partitions of the input and of the repartition topic are read to their ends.
        tool.until(lambda text: len(NO_LAG.findall(text)) == 4, "--describe", *GROUP)
        with_member(tool)
    finally:
        instance.stop()
    tool.until(lambda text: "Empty" in text, "--list", "--state")
    without_member(tool, folder)
    return tool.session


def with_member(tool: Tool) -> None:
    assert "KSTREAM-SOURCE" in tool("--describe", *GROUP, "--topology")
    tool("--list")
    for states in ((), ("Stable",), ("Empty",), ("stable,empty",), ("NotReady",)):
        tool("--list", "--state", *states)
    for what in ((), ("--offsets",), ("--state",), ("--members",), ("--topology",)):
        tool("--describe", *GROUP, *what)
        tool("--describe", *GROUP, *what, "--verbose")
    tool("--describe", "--all-groups", "--state")
    tool("--describe", "--group", "nobody")
    for change in (
        ("--reset-offsets", "--to-earliest", "--all-input-topics", "--execute"),
        ("--delete-offsets", "--input-topic", "lines"),
        ("--delete",),
    ):
        tool(*change, *GROUP)


def without_member(tool: Tool, folder: Path) -> None:
    everything = ("--all-input-topics", "--execute")
    tool("--describe", *GROUP, "--state")
    tool("--describe", *GROUP, "--members")
    for how in (
        ("--to-earliest", "--all-input-topics", "--dry-run"),
        ("--to-offset", "7", "--input-topic", "lines:1", "--dry-run"),
        ("--shift-by", "-5", "--input-topic", "lines", "--dry-run"),
        ("--to-latest", "--all-input-topics", "--dry-run", "--export"),
        ("--to-current", "--all-input-topics", "--dry-run"),
        ("--by-duration", "P1D", "--all-input-topics", "--dry-run"),
        ("--to-earliest", "--all-input-topics"),
        ("--to-offset", "3", "--input-topic", "lines:0", "--execute"),
    ):
        tool("--reset-offsets", *GROUP, *how)
    tool("--describe", *GROUP, "--offsets")
    plan = folder / "plan.csv"
    plan.write_text("lines,0,5\nlines,1,6\n")
    tool.run("--reset-offsets", *GROUP, "--from-file", str(plan), "--execute")
    tool("--reset-offsets", *GROUP, "--to-latest", *everything)
    tool("--describe", *GROUP)
    tool("--delete-offsets", *GROUP, "--input-topic", "lines:0")
    tool("--delete-offsets", *GROUP, "--all-input-topics")
    tool("--delete", *GROUP, "--delete-all-internal-topics")
    tool("--delete", *GROUP)
    tool("--list")
    tool("--describe", "--all-groups")


def test_the_tool_says_the_same_of_both_brokers(tmp_path: Path) -> None:
    classes = compiled(tmp_path)
    serve = Serve(settings=SETTINGS)
    try:
        ours = session_with(serve.address, classes, tmp_path / "ours")
    finally:
        serve.discard()
    directory = tmp_path / "kafka"
    directory.mkdir()
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    class_path = with_plugin(plugin)
    with real_kafka(directory, settings=SETTINGS, class_path=class_path) as address:
        theirs = session_with(address, classes, tmp_path / "theirs")
    assert [call for call, _ in ours] == [call for call, _ in theirs]
    differing = [
        f"{call}\n  embedlog {lacking(mine, other)}\n  Kafka {lacking(other, mine)}"
        for (call, mine), (_, other) in zip(ours, theirs, strict=True)
        if mine != other
    ]
    assert not differing, "\n".join(differing)
    assert sum(len(lines) for _, lines in ours) > len(ours)
