"""kafka-consumer-groups and kafka-groups: list, describe, reset, delete."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.interop.groups.group_run import GroupRun
from tests.interop.java_tools import run as run_tool

pytestmark = pytest.mark.interop

StartRun = Callable[..., GroupRun]


def groups(run: GroupRun, *arguments: str) -> str:
    """Run kafka-consumer-groups against the run's broker; return the output."""
    return run_tool("consumer-groups", "--bootstrap-server", run.address, *arguments, check=False)


def rows(output: str) -> list[dict[str, str]]:
    """Return the rows of the printed table, by the names of their columns."""
    lines = [line for line in output.splitlines() if line.strip()]
    titles = next(index for index, line in enumerate(lines) if line.startswith("GROUP"))
    names = re.split(r"\s{2,}|(?<=\S) (?=[A-Z#])", lines[titles].strip())
    return [dict(zip(names, line.split(), strict=False)) for line in lines[titles + 1 :]]


def consumed(run: GroupRun) -> None:
    """An empty group that has committed ten records of each partition."""
    member = run.join("confluent")
    run.produce(10 * len(run.partitions))
    run.wait_until_consumed()
    member.close()


def reset(run: GroupRun, *how: str) -> dict[int, int]:
    """Reset all topics, and return the new offset of every partition; only --execute stores it."""
    output = groups(run, "--reset-offsets", "--group", run.group, *how)
    found = [row for row in rows(output) if row["TOPIC"] == run.topic]
    return {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in found}


def committed(run: GroupRun) -> list[int]:
    """The committed offsets by partition."""
    return [offset for _, offset in sorted(run.committed().items())]


@pytest.mark.parametrize(("protocol", "assignor"), [("classic", "range"), ("consumer", "uniform")])
def test_a_group_is_listed_and_described(protocol: str, assignor: str, start_run: StartRun) -> None:
    run = start_run(partitions=2)
    run.join("confluent", protocol=protocol)
    run.produce(20)
    run.wait_until_stable(each=2)
    run.wait_until_consumed()
    kind = protocol.capitalize()
    assert run.group in groups(run, "--list").split()
    listed = {row["GROUP"]: row["STATE"] for row in rows(groups(run, "--list", "--state"))}
    assert listed[run.group] == "Stable"
    assert run.group in groups(run, "--list", "--state", "stable,empty")
    assert run.group not in groups(run, "--list", "--state", "Empty")
    every = run_tool("groups", "--bootstrap-server", run.address, "--list")
    assert {"GROUP": run.group, "TYPE": kind, "PROTOCOL": "consumer"} in rows(every)

    described = rows(groups(run, "--describe", "--group", run.group))
    assert [row["PARTITION"] for row in described] == ["0", "1"]
    for row in described:
        assert (row["GROUP"], row["TOPIC"]) == (run.group, run.topic)
        assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == ("10", "10", "0")
        assert row["HOST"] == "/127.0.0.1"
        assert row["CLIENT-ID"] == "rdkafka"
        assert row["CONSUMER-ID"]

    (member,) = rows(groups(run, "--describe", "--group", run.group, "--members"))
    assert member["CONSUMER-ID"] == described[0]["CONSUMER-ID"]
    assert member["#PARTITIONS"] == "2"
    verbose = groups(run, "--describe", "--group", run.group, "--members", "--verbose")
    assert f"{run.topic}:0,1" in verbose.replace("(", ":").replace(")", "")

    state = groups(run, "--describe", "--group", run.group, "--state")
    assert re.search(rf"{run.group}\s+127\.0\.0\.1:\d+\s+\(\d+\)\s+{assignor}\s+Stable\s+1", state)


def test_lag_is_the_number_of_uncommitted_records(start_run: StartRun) -> None:
    run = start_run(partitions=2)
    consumed(run)
    run.produce(5, partition=1)
    output = groups(run, "--describe", "--group", run.group)
    assert f"Consumer group '{run.group}' has no active members." in output
    described = rows(output)
    assert {row["PARTITION"]: row["LAG"] for row in described} == {"0": "0", "1": "5"}
    assert {row["CONSUMER-ID"] for row in described} == {"-"}


def test_an_unknown_group_is_reported_as_unknown(start_run: StartRun) -> None:
    run = start_run(partitions=1)
    nobody = groups(run, "--describe", "--group", "nobody-has-this-name")
    assert "GroupIdNotFoundException: Group nobody-has-this-name not found." in nobody
    nobody = groups(run, "--delete", "--group", "nobody-has-this-name")
    assert "GroupIdNotFoundException" in nobody


def test_offsets_are_reset_in_every_form(start_run: StartRun, tmp_path: Path) -> None:
    run = start_run(partitions=2)
    consumed(run)
    everything = ("--all-topics", "--execute")
    assert reset(run, "--to-earliest", "--all-topics", "--dry-run") == {0: 0, 1: 0}
    assert committed(run) == [10, 10]
    assert reset(run, "--to-earliest", *everything) == {0: 0, 1: 0}
    assert committed(run) == [0, 0]
    assert reset(run, "--shift-by", "4", *everything) == {0: 4, 1: 4}
    assert reset(run, "--to-offset", "7", "--topic", f"{run.topic}:1", "--execute") == {1: 7}
    assert committed(run) == [4, 7]
    assert reset(run, "--to-current", *everything) == {0: 4, 1: 7}
    assert reset(run, "--to-latest", *everything) == {0: 10, 1: 10}
    assert reset(run, "--by-duration", "PT1H", *everything) == {0: 0, 1: 0}
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000")
    assert reset(run, "--to-datetime", tomorrow, *everything) == {0: 10, 1: 10}
    assert committed(run) == [10, 10]
    (tmp_path / "plan.csv").write_text(f"{run.topic},0,2\n{run.topic},1,3\n")
    assert reset(run, "--from-file", str(tmp_path / "plan.csv"), "--execute") == {0: 2, 1: 3}
    assert committed(run) == [2, 3]


def test_offsets_of_an_active_group_are_neither_reset_nor_deleted(start_run: StartRun) -> None:
    run = start_run(partitions=1)
    run.join("confluent")
    run.produce(10)
    run.wait_until_consumed()
    how = ("--to-earliest", "--all-topics", "--execute")
    refused = groups(run, "--reset-offsets", "--group", run.group, *how)
    assert "current state is Stable" in refused
    assert committed(run) == [10]
    refused = groups(run, "--delete", "--group", run.group)
    assert "GroupNotEmptyException" in refused
    refused = groups(run, "--delete-offsets", "--group", run.group, "--topic", run.topic)
    assert "subscribed" in refused
    assert committed(run) == [10]


def test_offsets_and_groups_are_deleted(start_run: StartRun) -> None:
    run = start_run(partitions=2)
    consumed(run)
    offsets = ("--delete-offsets", "--group", run.group, "--topic")
    deleted = groups(run, *offsets, f"{run.topic}:0")
    assert re.search(rf"{run.topic}\s+0\s+Successful", deleted)
    assert committed(run) == [0, 10]
    deleted = groups(run, "--delete", "--group", run.group)
    assert f"Deletion of requested consumer groups ('{run.group}') was successful." in deleted
    assert run.group not in groups(run, "--list").split()
    assert committed(run) == [0, 0]
