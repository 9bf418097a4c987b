"""`embedlog dump`, `verify` and `tail`: their output and their exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog.cli import main
from embedlog.cli.text import printable
from tests.cli.test_serve import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory that was closed cleanly: two partitions, several segments, a group."""
    path = tmp_path / "data"
    with embedlog.open(path, durability="os", log_segment_bytes=1 << 20) as cluster:
        cluster.create_topic("events", 2)
        with cluster.producer(linger_ms=0) as producer:
            for number in range(600):
                value = b"%04d" % number * 1000
                producer.send("events", value, partition=0, key=b"k%d" % number).result()
            producer.send("events", b"caf\xc3\xa9 \xff\x1b[31m\n", partition=1).result()
        with cluster.consumer(group_id="group") as consumer:
            consumer.subscribe(["events"])
            consumer.poll(1000)
            consumer.commit()
    return path


def _flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def _called(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run the command in this process."""
    status = main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def _digest(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.mark.slow
def test_a_sound_directory_is_sound_and_unchanged(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _digest(data)
    status, out, err = _called("verify", data, capsys=capsys)
    assert (status, err) == (0, "")
    assert out.startswith(f"{data}: sound: 4 partitions, ")
    assert "MB/s)" in out
    assert _digest(data) == before


@pytest.mark.slow
def test_a_directory_in_use_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with embedlog.open(tmp_path / "data") as cluster, cluster.producer() as producer:
        for number in range(10):
            producer.send("events", b"%d" % number, partition=0).result()
        assert _called("verify", tmp_path / "data", capsys=capsys)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "position", "reason"),
    [
        ("events-0/00000000000000000000.log", 100, "crc"),
        ("events-0/00000000000000000000.log", 7, "offsets 1"),
        ("events-0/00000000000000000000.log", 15, "leader epoch 1"),
        ("events-0/00000000000000000000.index", 3, "offset"),
        ("events-0/00000000000000000000.timeindex", 7, "timeindex"),
        ("events-0/leader-epoch-checkpoint.sealed", 20, "crc"),
        ("events-0/leader-epoch-checkpoint", 0, "version"),
        ("recovery-point-offset-checkpoint.sealed", 30, "crc"),
        ("replication-offset-checkpoint", 0, "version"),
        ("meta.properties", 8, "version"),
        ("__cluster_metadata-0/00000000000000000000.log", 70, "crc"),
    ],
)
def test_damage_is_a_line_and_status_1(
    data: Path, capsys: pytest.CaptureFixture[str], name: str, position: int, reason: str
) -> None:
    _flip(data / name, position)
    status, out, _ = _called("verify", data, capsys=capsys)
    assert status == 1
    first, *_, last = out.splitlines()
    assert first.startswith(f"{data}/{name} at byte "), out
    assert reason in first
    assert "damaged" in last


@pytest.mark.slow
def test_damage_of_a_snapshot_and_an_index_is_found(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for pattern in ("*.snapshot", "*.index"):
        path = sorted((data / "events-0").glob(pattern))[-1]
        before = path.read_bytes()
        _flip(path, len(before) - 1)
        assert _called("verify", data, capsys=capsys)[0] == 1, path
        path.write_bytes(before)
    assert _called("verify", data, "--topic", "events", "--partition", "0", capsys=capsys)[0] == 0


@pytest.mark.slow
def test_every_flipped_bit_of_a_segment_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data"
    with embedlog.open(path) as cluster, cluster.producer() as producer:
        for value in (b"a", b"b"):
            producer.send("events", value, partition=0).result()
    log = path / "events-0" / "00000000000000000000.log"
    content = log.read_bytes()
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            log.write_bytes(damaged)
            assert _called("verify", path, capsys=capsys)[0] == 1, (position, bit)


@pytest.mark.slow
def test_a_torn_end_after_a_crash_is_no_damage(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = sorted((data / "events-0").glob("*.log"))[-1]
    segment.write_bytes(segment.read_bytes()[:-100] + bytes(200))
    assert _called("verify", data, capsys=capsys)[0] == 1, "it was closed cleanly"
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint.sealed").unlink()
    (data / "recovery-point-offset-checkpoint").unlink()
    status, out, _ = _called("verify", data, capsys=capsys)
    assert status == 0, out
    assert "bytes of unfinished batches" in out


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "dump", "tail"])
def test_an_unreadable_path_is_one_line_and_status_2(tmp_path: Path, command: str) -> None:
    more = ("events",) if command == "tail" else ()
    for path, reason in (
        (tmp_path / "nothing", "not a directory"),
        (tmp_path, "no topic" if command == "tail" else "no data directory"),
        ("localhost:9092", "an address"),
    ):
        status, out, err = run(command, str(path), *more)
        assert (status, out) == (2, "")
        assert err.startswith("embedlog: ")
        assert reason in err
        assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [(), ("nonsense",), ("verify",), ("dump", ".", "--offset", "x"), ("tail", ".")],
)
def test_wrong_usage_is_status_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err
    assert "Traceback" not in err


@pytest.mark.slow
def test_help_lists_every_command() -> None:
    status, out, _ = run("--help")
    assert status == 0
    for command in ("serve", "dump", "verify", "tail", "salvage"):
        assert f"\n  {command} " in out
    assert run("--version") == (0, f"embedlog {embedlog.__version__}\n", "")


@pytest.mark.slow
def test_dump_shows_batches_records_and_files(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = _called("dump", data, "--json", "--records", "--files", capsys=capsys)
    assert status == 0
    items = [json.loads(line) for line in out.splitlines()]
    kinds = {item["kind"] for item in items}
    assert {"segment", "batch", "record", "index", "timeindex", "snapshot", "leader epoch",
            "topic id", "checkpoint", "property"} <= kinds  # fmt: skip
    batches = [item for item in items if item["kind"] == "batch"]
    assert all(item["baseOffset"] <= item["lastOffset"] for item in batches)
    decoded = " ".join(item["decoded"] for item in items if "decoded" in item)
    assert "TopicRecord(name='events'" in decoded
    assert "OffsetCommitKey" in decoded
    values = [item["value"] for item in items if item["kind"] == "record" and item["key"] == "k7"]
    assert values == ["0007" * 1000]


@pytest.mark.slow
def test_a_batch_that_compresses_well_is_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """zstd makes 1 byte of thousands; only the limit of the size counts, here a raised one."""
    small, large = b"a" * (2 << 20), b"a" * (65 << 20)
    settings = {"max_decompressed_message_bytes": 100 << 20, "durability": "os"}
    with embedlog.open(tmp_path / "data", **settings) as cluster:
        with cluster.producer(
            compression_type="zstd", max_request_size=1 << 30, buffer_memory=1 << 30
        ) as producer:
            producer.send("small", small).result()
            producer.send("large", large).result()
        with cluster.consumer(auto_offset_reset="earliest", group_id=None) as consumer:
            consumer.assign([("large", 0)])
            (record,) = consumer.poll(5_000)
            assert record.value == large
    with embedlog.open_reader(tmp_path / "data") as reader:
        (found,) = reader.partition("large", 0).records()
        assert found.value == large
    assert _called("verify", tmp_path / "data", capsys=capsys)[0] == 0
    chosen = ("dump", tmp_path / "data", "--topic", "small", "--records")
    status, out, _ = _called(*chosen, capsys=capsys)
    assert (status, "damage" in out, small.decode() in out) == (0, False, True)


@pytest.mark.slow
def test_dump_begins_at_the_given_offset_and_shows_damage(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("dump", data, "--topic", "events", "--partition", "0")
    status, out, _ = _called(*chosen, "--offset", "598", capsys=capsys)
    assert status == 0
    assert "baseOffset: 598" in out
    assert "baseOffset: 597" not in out
    _flip(data / "events-0" / "00000000000000000000.log", 5000)
    status, out, _ = _called(*chosen, capsys=capsys)
    assert status == 1
    assert "damage file: " in out
    assert "baseOffset: 599" in out, "the segments behind it are shown"


@pytest.mark.slow
def test_tail_shows_the_last_records_and_does_nothing_to_the_terminal(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = _called("tail", data, "events", "-n", "2", capsys=capsys)
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[:2] for line in lines] == [
        ["events-0", "598"], ["events-0", "599"], ["events-1", "0"]
    ]  # fmt: skip
    assert lines[2].endswith(r"café \xff\x1b[31m\n")
    status, out, _ = _called(
        "tail", data, "events", "--from-beginning", "--partition", 0, "--json", capsys=capsys
    )
    assert [json.loads(line)["offset"] for line in out.splitlines()] == list(range(600))


def test_tail_follows_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with embedlog.open(path) as cluster, cluster.producer() as producer:
        producer.send("events", b"first", partition=0).result()
        command = [sys.executable, "-m", "embedlog", "tail", str(path), "events", "-f"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().endswith(" first\n")
            producer.send("events", b"second", partition=0).result()
            assert process.stdout.readline().endswith(" second\n")
            process.terminate()


@pytest.mark.slow
def test_salvage_removes_damage_and_names_the_lost_offsets(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _called("salvage", data, capsys=capsys)[0] == 0
    path = data / "events-0" / "00000000000000000000.log"
    _flip(path, 5000)
    damaged = path.read_bytes()
    status, out, _ = _called("salvage", data, "--dry-run", capsys=capsys)
    assert status == 1
    assert "events-0: would keep 599 batches up to offset 600; lost offsets: 1..1;" in out
    assert path.read_bytes() == damaged
    status, out, _ = _called("salvage", data, "--topic", "events", capsys=capsys)
    assert status == 0
    quarantine = Path(out.splitlines()[-1].split()[-1])
    assert quarantine.read_bytes() == damaged
    assert _called("verify", data, capsys=capsys)[0] == 0
    with embedlog.open(data, durability="os") as cluster, cluster.consumer() as consumer:
        consumer.assign([("events", 0)])
        consumer.seek_to_beginning()
        seen: list[int] = []
        while len(seen) < 599:
            seen += [record.offset for record in consumer.poll(1000)]
        assert seen == [0, *range(2, 600)]
        assert [each.kind for each in cluster.health()] == ["quarantined"]
        status, _, err = _called("salvage", data, capsys=capsys)
        assert status == 2
        assert "embedlog: " in err


@pytest.mark.slow
def test_a_reader_may_close_the_output_early(data: Path) -> None:
    command = [sys.executable, "-m", "embedlog", "dump", str(data), "--records"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.slow
def test_verify_shows_progress_on_a_terminal(data: Path) -> None:
    outer, inner = os.openpty()
    command = [sys.executable, "-m", "embedlog", "verify", str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=inner) as process:
        os.close(inner)
        assert process.stdout is not None
        assert b": sound: " in process.stdout.read()
        assert process.wait() == 0
    shown = b""
    while True:
        try:
            part = os.read(outer, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(outer)
    assert b"verify" in shown


def test_control_characters_are_shown_as_text() -> None:
    assert printable("a\x1b[31m\nb") == r"a\x1b[31m\nb"
