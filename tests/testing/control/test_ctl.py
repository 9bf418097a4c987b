"""`embedlog ctl`: calls from a shell, and `embedlog serve --control`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embedlog.cli import main
from embedlog.errors import ConfigError
from embedlog.testing import Kafka, RemoteKafka

ROOT = Path(__file__).resolve().parents[3]


class Shell:
    """Runs `embedlog ctl` in this process."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._url = url
        self._capsys = capsys

    def __call__(self, *words: str, as_json: bool = False) -> tuple[int, str, str]:
        """Return the exit status and both outputs."""
        options = ["--json"] if as_json else []
        status = main(["ctl", "--url", self._url, *options, *words])
        found = self._capsys.readouterr()
        return status, found.out.strip(), found.err.strip()


@pytest.fixture
def ctl(kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(kafka.control().url, capsys)


@pytest.mark.slow
def test_calls_from_a_shell(kafka: Kafka, ctl: Shell) -> None:
    assert ctl("broker", "kill", "1", "--lose-unsynced") == (0, "", "")
    assert not kafka.broker(1).is_running
    assert ctl("broker", "is_running", "1") == (0, "false", "")
    assert ctl("broker", "start", "--node-id=1")[0] == 0
    assert ctl("network", "split", "1", "2,3")[0] == 0
    assert kafka.network.is_cut(2, 1) and not kafka.network.is_cut(2, 3)
    ctl("network", "heal")
    status, out, _ = ctl(
        "create_topic", "new", "--partitions", "2", "--config", '{"retention.ms": 9}'
    )
    assert (status, json.loads(out)["configs"]["retention.ms"]) == (0, "9")
    ctl("partition", "reassign", "t", "0", "[2,3]")
    assert ctl("bootstrap_servers")[1] == kafka.bootstrap_servers


def test_a_kept_object_is_named_by_its_id(ctl: Shell) -> None:
    status, id, _ = ctl("registry", "fault", "register", "--status", "503", "--may-miss")
    assert (status, id) == (0, "registry_fault-1")
    assert ctl("registry_fault", "hits", id) == (0, "0", "")
    assert ctl("registry_fault", "remove", id)[0] == 0


@pytest.mark.slow
def test_a_fault_from_a_shell(kafka: Kafka, ctl: Shell) -> None:
    added = "fault add Produce --topic t --error NOT_ENOUGH_REPLICAS --times 2"
    assert ctl(*added.split()) == (0, "fault-1", "")
    assert "NOT_ENOUGH_REPLICAS" in ctl("fault", "list")[1]
    producer = kafka.producer()
    producer.send("t", b"x").result()
    assert ctl("fault", "wait", "fault-1", "2", "--timeout", "60")[0] == 0
    assert ctl("fault", "hits", "fault-1")[1] == "2"
    assert ctl("fault", "end", "fault-1") == (0, "", "")
    assert ctl("fault", "list", as_json=True)[1] == "[]"
    assert ctl("fault", "wait", "fault-1", "3", "--timeout", "0.01")[0] == 1
    assert ctl("fault", "forget", "fault-1")[0] == 0
    assert ctl("fault", "hits", "fault-1")[0] == 2


@pytest.mark.slow
def test_topics_groups_and_waits_from_a_shell(kafka: Kafka, ctl: Shell) -> None:
    assert ctl("topic", "put", "t", "x", "k", "--timestamp", "5")[0] == 0
    status, out, _ = ctl("topic", "records", "t")
    assert json.loads(out) == {
        "topic": "t", "partition": 0, "offset": 0, "timestamp": 5, "key": "k", "value": "x",
        "headers": [],
    }  # fmt: skip
    status, out, _ = ctl("topic", "values", "t", "--since", "0", as_json=True)
    assert json.loads(out) == [{"@text": "x"}]
    assert ctl("topic", "only", "t", "--matching", "value=y")[0] == 1
    assert ctl("group", "commit", "g", "t-0=1")[0] == 0
    assert ctl("wait", "lag", "g") == (0, '{"t-0": 0}', "")
    status, _, said = ctl("wait", "group", "g", "--members", "2", "--timeout", "0.01")
    assert status == 1
    assert said.startswith("embedlog: WaitTimedOut: waited 0.01 s for")
    assert ctl("clock", "jump", "--hours", "3")[0] == 1
    assert json.loads(ctl("clock", "timers")[1].splitlines()[0])["in_seconds"] >= 0


def test_a_refused_call_is_status_1(ctl: Shell) -> None:
    status, out, said = ctl("broker", "kill", "9")
    assert (status, out) == (1, "")
    assert said == "embedlog: ConfigError: there is no broker 9, only [1, 2, 3]"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("broker kil 1", "did you mean 'broker kill'"),
        ("nothing", "`embedlog ctl` lists all"),
        ("broker kill one", "node_id: 'one' is no integer or null"),
        ("broker kill 1 2", "'2' is one value too much"),
        ("broker kill 1 --lose-unsync", "did you mean --lose-unsynced"),
        ("partition move_to t 0", "needs node_id"),
    ],
)
def test_a_wrong_call_is_status_2(ctl: Shell, words: str, part: str) -> None:
    status, out, said = ctl(*words.split())
    assert (status, out) == (2, "")
    assert part in said


def test_nothing_answers_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, said = Shell("http://127.0.0.1:1", capsys)("broker", "kill", "1")
    assert status == 2
    assert "no control door answers" in said


def test_the_calls_are_listed_and_explained(ctl: Shell) -> None:
    status, out, _ = ctl()
    assert status == 0
    assert "broker kill [NODE_ID] [--lose-unsynced]" in out.splitlines()
    assert "network split [GROUPS...]" in out.splitlines()
    status, out, _ = ctl("broker", "disk")
    assert (status, out.splitlines()[0]) == (0, "broker disk directories [NODE_ID]")
    assert not [each for each in out.splitlines() if not each.startswith("broker disk ")]
    status, out, _ = ctl("fault", "add", "--help")
    assert status == 0
    assert "[--times TIMES]" in out and "cut-after-apply" in out
    status, out, _ = ctl("broker", "kill", "--help")
    assert status == 0
    assert "SIGKILL" in out


@contextmanager
def served(*words: str) -> Iterator[tuple[RemoteKafka, str]]:
    """`embedlog serve` with a control door, and the address that it announces."""
    command = [sys.executable, "-m", "embedlog", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--control", "127.0.0.1:0", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        found = re.search(r"control at (http://\S+);", lines[3])
        assert found is not None, lines
        with RemoteKafka(found[1]) as remote:
            yield remote, lines[0].split()[-1]
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("brokers", ["1", "2"])
def test_serve_has_a_clock_and_states(brokers: str, tmp_path: Path) -> None:
    with served("--clock", "manual", "--brokers", brokers) as (remote, address):
        assert remote.bootstrap_servers == address
        remote.create_topic("t", 1)
        remote.producer().send("t", b"x").result()
        before = remote.clock.now()
        remote.clock.jump(hours=3)
        assert (remote.clock.now() - before).total_seconds() >= 10_800
        saved = remote.snapshot()
        remote.producer().send("t", b"y").result()
        remote.restore(saved)
        assert remote.bootstrap_servers == address
        assert remote.topic("t").values() == [b"x"]
        assert remote.producer().send("t", b"z").result().offset == 1
        path = remote.save(tmp_path / "state")
    with served("--data", path) as (remote, _):
        assert remote.topic("t").values() == [b"x", b"z"]
        with pytest.raises(ConfigError, match="snapshots are of clusters in memory"):
            remote.restore(remote.snapshot())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--control 0.0.0.0:0", "needs a token"),
        ("--control 9099", "HOST:PORT"),
        ("--control x:99999", "not a port"),
        ("--clock manual", "needs --control"),
    ],
)
def test_serve_refuses_a_control_door(words: str, part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "embedlog", "serve", "--port", "0", *words.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert part in done.stderr
