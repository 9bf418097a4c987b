"""`embedlog serve` in a process of its own: its output, its end, and the data that it keeps."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

import embedlog
from tests.server.wire_client import WireClient, fetch, fetched_values, produce
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.describe_log_dirs import DescribeLogDirsRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "embedlog"]
SECONDS_MAX = 60


class Server:
    """A running `embedlog serve`; `lines` is its output up to readiness."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline() for _ in range(3)]
        found = re.fullmatch(r"embedlog: listening on 127\.0\.0\.1:(\d+)\n", self.lines[0])
        if found is None:
            self.process.kill()
            raise AssertionError((self.lines, self.process.communicate()))
        self.port = int(found[1])

    def client(self) -> WireClient:
        return WireClient(("127.0.0.1", self.port))

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal; return the exit status and the output since the start."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, out, err


@contextmanager
def serving(*arguments: str, port: str | None = "0", **environment: str) -> Iterator[Server]:
    server = Server(*(() if port is None else ("--port", port)), *arguments, **environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


def run(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def make_topic(client: WireClient, name: str) -> None:
    topics = [MetadataRequestTopic(name=name)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
    while client.ask(request, 9).topics[0].error_code:
        continue  # the topic is created soon after the answer


@pytest.mark.slow
def test_the_output_names_the_address_the_durability_and_how_to_stop() -> None:
    with serving() as server:
        assert server.lines[1:] == [
            "embedlog: everything is kept in memory; durability memory: "
            "nothing survives the end of this process\n",
            "embedlog: stop with Ctrl-C or SIGTERM\n",
        ]
        assert server.end() == (0, "embedlog: stopped\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly_with_clients_connected(number: int) -> None:
    with serving() as server, server.client() as client:
        make_topic(client, "events")
        client.send(fetch("events", 0, wait_ms=60_000), 11)
        assert server.end(number) == (0, "embedlog: stopped\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "promise"),
    [
        ((), "survive the end of this process, not a loss of power"),
        (("--durability", "os"), "survive the end of this process, not a loss of power"),
        (("--durability", "fsync"), "survive a loss of power"),
        (("--config", "embedlog.durability=fsync"), "survive a loss of power"),
    ],
)
def test_data_survives_a_restart(tmp_path: Path, arguments: tuple[str, ...], promise: str) -> None:
    data = str(tmp_path / "new" / "data")
    with serving("--data", data, *arguments) as server, server.client() as client:
        assert f"data in {data}" in server.lines[1]
        assert promise in server.lines[1]
        make_topic(client, "events")
        for number in range(3):
            client.ask(produce("events", b"value %d" % number), 7)
        assert server.end() == (0, "embedlog: stopped\n", "")
    with serving("--data", data, *arguments) as server, server.client() as client:
        values = fetched_values(client.ask(fetch("events", 0), 11))
        assert values == [b"value 0", b"value 1", b"value 2"]
        answer = client.ask(produce("events", b"after"), 7)
        assert answer.responses[0].partition_responses[0].base_offset == 3


@pytest.mark.slow
def test_acknowledged_data_survives_a_kill(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path)) as server, server.client() as client:
        make_topic(client, "events")
        client.ask(produce("events", b"kept"), 7)
        server.end(signal.SIGKILL)
    with serving("--data", str(tmp_path)) as server, server.client() as client:
        assert fetched_values(client.ask(fetch("events", 0), 11)) == [b"kept"]


def test_settings_reach_the_broker() -> None:
    with serving("--config", "num.partitions=7") as server, server.client() as client:
        make_topic(client, "events")
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="events")]), 9)
        assert len(answer.topics[0].partitions) == 7


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--instant",)])
def test_instant_brokers_answer_at_once_about_a_new_topic(arguments: tuple[str, ...]) -> None:
    with serving(*arguments) as server, server.client() as client:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True
        )
        (topic,) = client.ask(request, 9).topics
        assert bool(topic.error_code) == (not arguments)
        assert bool(topic.partitions) == bool(arguments)


@pytest.mark.slow
def test_kafkas_own_settings_set_node_id_listeners_and_log_directory(
    tmp_path: Path,
) -> None:
    settings = ("node.id=0", "listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}")
    arguments = [word for setting in settings for word in ("--config", setting)]
    with serving(*arguments, port=None) as server, server.client() as client:
        assert f"data in {tmp_path};" in server.lines[1]
        make_topic(client, "events")
        answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="events")]), 9)
        assert [node.node_id for node in answer.brokers] == [0]
        assert answer.controller_id == 0
        assert [each.replica_nodes for each in answer.topics[0].partitions] == [[0]]
        expected = {
            "node.id": "0",
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{server.port}",
            "log.dirs": str(tmp_path),
        }
        broker = DescribeConfigsResource(
            resource_type=4, resource_name="0", configuration_keys=list(expected)
        )
        (result,) = client.ask(DescribeConfigsRequest(resources=[broker]), 4).results
        assert {config.name: config.value for config in result.configs} == expected
    status, _, said = run("serve", "--data", str(tmp_path), "--port", "0")
    assert status == 2
    assert "the directory belongs to node '0', this is 1" in said


@pytest.mark.slow
@pytest.mark.parametrize("way", ["log.dirs", "--log-dirs"])
def test_several_log_directories(tmp_path: Path, way: str) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    if way == "log.dirs":
        arguments = ["--config", f"log.dirs={first},{second}"]
    else:
        arguments = ["--data", str(first), "--log-dirs", str(second)]
    with serving(*arguments) as server, server.client() as client:
        assert f"data in {first}, {second};" in server.lines[1]
        make_topic(client, "events")
        make_topic(client, "more")
        answer = client.ask(DescribeLogDirsRequest(topics=None), 5)
        assert {each.log_dir: [topic.name for topic in each.topics] for each in answer.results} == {
            str(first): ["events"],
            str(second): ["more"],
        }
    assert (second / "more-0").is_dir()
    status, _, said = run("serve", "--log-dirs", str(second), "--data", str(second))
    assert status == 2
    assert "named twice" in said


def test_an_unknown_setting_is_a_warning_in_one_line() -> None:
    with serving("--config", "num.partition=7") as server:
        status, _, err = server.end()
        assert status == 0
        assert err == (
            "embedlog: warning: unknown broker setting 'num.partition'; "
            "did you mean 'num.partitions'?\n"
        )


def test_settings_without_effect_are_a_warning_in_one_line() -> None:
    with serving("--config", "sasl.enabled.mechanisms=PLAIN") as server:
        status, _, err = server.end()
        assert status == 0
        assert err == (
            "embedlog: warning: broker settings without effect in embedlog: "
            "sasl.enabled.mechanisms=PLAIN; listeners neither encrypt nor authenticate\n"
        )


def test_listeners_without_a_host_listen_on_this_machine_with_a_notice() -> None:
    with serving("--config", "listeners=PLAINTEXT://:0,CONTROLLER://:9093", port=None) as server:
        with server.client() as client:
            make_topic(client, "events")
        status, _, err = server.end()
        assert status == 0
        assert err.startswith("embedlog: listeners names no host: only this machine can connect")
        assert err.count("\n") == 1


@pytest.mark.slow
def test_data_may_be_memory_or_below_the_home_directory(tmp_path: Path) -> None:
    with serving("--data=:memory:") as server:
        assert "kept in memory" in server.lines[1]
    with serving("--data=~/data", HOME=str(tmp_path)) as server:
        assert f"data in {tmp_path}/data;" in server.lines[1]
    assert_refused(run("serve", "--data", "localhost:9092"), "is an address", "embedlog.Producer")


def assert_refused(result: tuple[int, str, str], *words: str) -> None:
    """Check for status 2, no standard output, and one plain line that holds all of `words`."""
    status, out, err = result
    assert (status, out) == (2, ""), result
    assert err.startswith("embedlog: "), err
    assert err.count("\n") == 1, err
    assert err.endswith("\n"), err
    for word in words:
        assert word in err, (word, err)


@pytest.mark.slow
def test_a_directory_in_use_is_refused_and_its_owner_is_named(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path)) as server:
        result = run("serve", "--port", "0", "--data", str(tmp_path))
        assert_refused(result, str(tmp_path), str(server.process.pid))
        assert server.end()[0] == 0
    with serving("--data", str(tmp_path)) as server:
        assert server.end()[0] == 0


@pytest.mark.slow
def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--port", str(port))
        assert_refused(result, f"cannot listen on 127.0.0.1:{port}: Address already in use")


@pytest.mark.slow
def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a directory")
    result = run("serve", "--port", "0", "--data", str(path))
    assert_refused(result, f"{path}: not a directory")
    result = run("serve", "--port", "0", "--data", str(path / "below"))
    assert_refused(result, str(path), "not a directory")
    assert path.read_text() == "not a directory"


def test_a_directory_that_cannot_be_written_is_refused() -> None:
    # Root may write to any ordinary directory, but not even root to this one.
    result = run("serve", "--port", "0", "--data", "/proc/embedlog-data")
    assert_refused(result, "/proc/embedlog-data")


def test_a_public_address_is_refused_unless_it_is_named() -> None:
    result = run("serve", "--port", "0", "--host", "0.0.0.0")
    assert_refused(result, "0.0.0.0", "--allow-remote-plaintext")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "no such host"), ("cannot listen on no such host:",)),
        (("--config", "num.partitions=many"), ("num.partitions", "many")),
        (("--durability", "fsync"), ("durability", "path")),
        (("--data", ""), ("path is empty",)),
    ],
)
def test_a_refusal_is_one_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_refused(run("serve", "--port", "0", *arguments), *words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "COMMAND"),
        (("serve", "--port", "65536"), "'65536' is not a port"),
        (("serve", "--port", "-1"), "'-1' is not a port"),
        (("serve", "--config", "novalue"), "'novalue' is not of the form NAME=VALUE"),
        (("serve", "--durability", "memory"), "--durability"),
        (("fly",), "fly"),
    ],
)
def test_wrong_arguments_end_with_status_2(arguments: tuple[str, ...], words: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_the_version_is_the_projects() -> None:
    assert run("--version") == (0, f"embedlog {embedlog.__version__}\n", "")


@pytest.mark.slow
def test_it_runs_on_when_its_output_is_closed() -> None:
    with serving() as server:
        assert server.process.stdout is not None
        server.process.stdout.close()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SECONDS_MAX) == 0


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_the_server_runs_on(tmp_path: Path) -> None:
    """A limit on file sizes stands in for the disk: a write beyond it fails like a full one."""
    script = (
        "import resource, signal, sys;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000));"
        "from embedlog.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "serve", "--port", "0", "--data", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        with WireClient(("127.0.0.1", port)) as client:
            make_topic(client, "events")
            make_topic(client, "other")
            codes = []
            for _ in range(8):
                answer = client.ask(produce("events", os.urandom(900_000)), 7)
                codes.append(answer.responses[0].partition_responses[0].error_code)
            assert codes[0] == 0
            assert codes[-1] == 56, "KAFKA_STORAGE_ERROR"
            stored = codes.index(56)
            assert set(codes[stored:]) == {56}
            # Stored records are still served, and so are all other partitions.
            assert len(fetched_values(client.ask(fetch("events", stored - 1), 11))) == 1
            answer = client.ask(produce("other", b"fits"), 7)
            assert answer.responses[0].partition_responses[0].error_code == 0
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, err
        assert "Traceback" not in err
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def heeds_sighup() -> Iterator[None]:
    """Stop children of this process from inheriting its ignored SIGHUP (nohup)."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.mark.usefixtures("heeds_sighup")
def test_a_closed_terminal_ends_it_cleanly(tmp_path: Path) -> None:
    with serving("--data", str(tmp_path)) as server:
        with server.client() as client:
            make_topic(client, "events")
        status, out, err = server.end(signal.SIGHUP)
        assert (status, out, err) == (0, "embedlog: stopped\n", "")
    assert ".kafka_cleanshutdown" in os.listdir(tmp_path)


def test_it_runs_on_under_nohup(tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    code += "from embedlog.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGHUP)
        with WireClient(("127.0.0.1", int(lines[0].rpartition(":")[2]))) as client:
            make_topic(client, "events")
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0


def logged(*arguments: str) -> str:
    """Return the standard error of `serve` while a topic is created and a TLS client connects."""
    with serving(*arguments) as server:
        with server.client() as client:
            make_topic(client, "events")
        with socket.create_connection(("127.0.0.1", server.port), SECONDS_MAX) as foreign:
            foreign.sendall(bytes.fromhex("16030100c8010000c40303") + bytes(64))
            assert not foreign.recv(1)
        status, out, err = server.end()
        assert (status, out) == (0, "embedlog: stopped\n")
        return err


@pytest.mark.slow
def test_warnings_are_logged_and_the_level_can_be_set() -> None:
    plain = logged()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \S+ WARNING embedlog.listener: .*TLS.*\n", plain)
    assert logged("-q") == ""
    assert logged("--log-level", "ERROR") == ""
    verbose = logged("-v")
    assert " INFO embedlog.controller: " in verbose
    assert "events" in verbose
    assert " DEBUG " not in verbose
    assert " DEBUG embedlog.listener: " in logged("-vv")
    assert " DEBUG embedlog.listener: " in logged("--log-level", "debug")


def test_lines_of_json_hold_one_object_each() -> None:
    lines = logged("-v", "--log-format", "json", "--config", "num.partition=2").splitlines()
    objects = [json.loads(line) for line in lines]
    for each in objects:
        assert set(each) >= {"time", "level", "logger", "message"}
        assert datetime.fromisoformat(each["time"]).tzinfo is not None
    assert {each["level"] for each in objects} == {"INFO", "WARNING"}
    assert any("did you mean 'num.partitions'" in each["message"] for each in objects)


def test_levels_that_contradict_each_other_are_refused() -> None:
    status, _, err = run("serve", "-v", "-q")
    assert status == 2
    assert "not allowed with" in err
