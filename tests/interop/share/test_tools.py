"""Kafka's Java tools: the console and verifiable share consumers, and kafka-share-groups whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.interop.groups.test_tools import rows
from tests.interop.java_tools import run
from tests.interop.share.confluent_member import ConfluentMember
from tests.interop.share.share_group import Offsets, ShareGroup

pytestmark = [pytest.mark.interop, pytest.mark.slow]
NewGroup = Callable[..., ShareGroup]
EVERYTHING = ("--all-topics", "--execute")


def tool(group: ShareGroup, *arguments: str, name: str = "share-groups") -> str:
    """Run a tool; return its output."""
    return run(name, "--bootstrap-server", group.address, *arguments, check=False)


def console(group: ShareGroup, *arguments: str) -> list[list[str]]:
    """Read with the console consumer; return delivery counts and values."""
    out = tool(
        group, "--topic", group.topic, "--group", group.name, "--timeout-ms", "10000",
        "--formatter-property", "print.delivery=true", *arguments,
        name="console-share-consumer",
    )  # fmt: skip
    return [line.split("\t") for line in out.splitlines() if line.startswith("Delivery:")]


def reset(group: ShareGroup, *how: str) -> dict[int, int]:
    """Reset offsets; return the new one of every partition. Only --execute stores them."""
    found = rows(tool(group, "--reset-offsets", "--group", group.name, *how))
    return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in found}


def starts(group: ShareGroup) -> dict[int, int]:
    return {partition: each.start for partition, each in group.offsets().items()}


def consumed(group: ShareGroup) -> None:
    """Let a member accept ten records of each of two partitions, and leave."""
    for partition in (0, 1):
        group.produce(range(10), partition=partition)
    with ConfluentMember(group, "implicit") as member:
        read = 0
        while read < 20:
            read += len(member.poll())
            member.commit()


def test_the_console_consumer_accepts_releases_and_rejects(new_group: NewGroup) -> None:
    group = new_group()
    group.produce(["a", "b", "c"])
    assert console(group, "--release", "--max-messages", "3") == [
        ["Delivery:1", value] for value in "abc"
    ]
    assert console(group, "--reject", "--max-messages", "1") == [["Delivery:2", "a"]]
    first, *_ = found = console(group, "--max-messages", "2")
    assert [value for _, value in found] == ["b", "c"]
    assert int(first[0].removeprefix("Delivery:")) in (2, 3)  # "b" may have been fetched with "a"
    assert group.lag() == 0


@pytest.mark.parametrize("mode", ["auto", "sync", "async"])
def test_the_verifiable_consumer_acknowledges_every_offset(mode: str, new_group: NewGroup) -> None:
    group = new_group()
    group.produce(range(50))
    out = tool(
        group, "--topic", group.topic, "--group-id", group.name, "--max-messages", "50",
        "--acknowledgement-mode", mode, "--offset-reset-strategy", "earliest",
        name="verifiable-share-consumer",
    )  # fmt: skip
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    names = [each["name"] for each in found]
    assert names[:2] == ["startup_complete", "offset_reset_strategy_set"]
    assert names[-1] == "shutdown_complete"
    told = [each for each in found if each["name"] == "offsets_acknowledged"]
    assert all(each["success"] for each in told)
    offsets = [o for each in told for place in each["partitions"] for o in place["offsets"]]
    assert sorted(offsets) == list(range(50))
    assert group.lag() == 0


def test_a_group_with_a_member_is_listed_and_described(new_group: NewGroup) -> None:
    group = new_group(partitions=2)
    with ConfluentMember(group, "implicit", client_id="worker") as member:
        for partition in (0, 1):
            group.produce(range(10), partition=partition)
            assert len(member.poll()) == 10
            member.commit()
        group.produce(range(3), partition=1)
        listed = {row["GROUP"]: row["STATE"] for row in rows(tool(group, "--list", "--state"))}
        assert listed[group.name] == "Stable"
        assert group.name not in tool(group, "--list", "--state", "Empty").split()
        described = rows(tool(group, "--describe", "--group", group.name))
        assert [(row["TOPIC"], row["PARTITION"]) for row in described] == [
            (group.topic, "0"),
            (group.topic, "1"),
        ]
        assert [row["LAG"] for row in described] == ["0", "3"]
        (described_member,) = rows(
            tool(group, "--describe", "--group", group.name, "--members", "--verbose")
        )
        assert described_member["CLIENT-ID"] == "worker"
        assert described_member["HOST"] == "/127.0.0.1"
        assert described_member["#PARTITIONS"] == "2"
        assert f"{group.topic}:0,1" in " ".join(described_member.values())
        state = tool(group, "--describe", "--all-groups", "--state", "--verbose")
        assert re.search(
            rf"{group.name}\s+127\.0\.0\.1:\d+\s+\(1\)\s+Stable\s+\d+\s+\d+\s+1\s", state
        )
        name = ("--group", group.name)
        refused = tool(group, "--reset-offsets", *name, "--to-earliest", *EVERYTHING)
        assert f"Share group '{group.name}' is not empty." in refused
        refused = tool(group, "--delete", *name)
        assert "GroupNotEmptyException" in refused
        refused = tool(group, "--delete-offsets", *name, "--topic", group.topic)
        assert "The group is not empty." in refused


def test_offsets_are_reset_in_every_form(new_group: NewGroup) -> None:
    group = new_group(partitions=2)
    consumed(group)
    before = starts(group)
    assert reset(group, "--to-earliest", "--all-topics", "--dry-run") == {0: 0, 1: 0}
    assert starts(group) == before
    assert reset(group, "--to-latest", *EVERYTHING) == {0: 10, 1: 10}
    assert group.offsets() == {0: Offsets(10, 0), 1: Offsets(10, 0)}
    assert reset(group, "--to-earliest", "--topic", f"{group.topic}:1", "--execute") == {1: 0}
    assert starts(group) == {0: 10, 1: 0}
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000")
    assert reset(group, "--to-datetime", tomorrow, *EVERYTHING) == {0: 10, 1: 10}
    yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000")
    assert reset(group, "--to-datetime", yesterday, *EVERYTHING) == {0: 0, 1: 0}
    with ConfluentMember(group, "implicit") as member:
        read = 0
        while read < 20:
            read += len(member.poll())
            member.commit()
    assert group.lag() == 0


def test_offsets_and_groups_are_deleted(new_group: NewGroup) -> None:
    group, other = new_group(partitions=2), new_group(partitions=2)
    consumed(group)
    consumed(other)
    deleted = tool(group, "--delete-offsets", "--group", group.name, "--topic", group.topic)
    assert re.search(rf"{group.topic}\s+Successful", deleted)
    assert group.offsets() == {}
    names = ("--group", group.name, "--group", other.name)
    deleted = tool(group, "--delete", *names)
    assert "was successful" in deleted
    assert not {group.name, other.name} & set(tool(group, "--list").split())
    nobody = tool(group, "--describe", "--group", "nobody")
    assert "GroupIdNotFoundException: Group nobody not found." in nobody
    assert "Group 'nobody' is not a share group." in tool(group, "--delete", "--group", "nobody")
