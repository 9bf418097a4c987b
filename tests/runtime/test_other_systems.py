"""macOS and Windows, as far as Linux can show them: by removing functions that they lack."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from embedlog.runtime.descriptors import choose_sync

ROOT = Path(__file__).resolve().parents[2]


def _on_windows(script: str, *arguments: str) -> str:
    """Run a program with only the system functions of Windows, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", f"import tests.runtime.windows_like\n{script}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOTTY, errno.EIO, 0])
def test_on_macos_a_sync_flushes_the_drive(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []

    def control(descriptor: int, command: int) -> int:
        calls.append(("full", descriptor))
        assert command == 51
        if code:
            raise OSError(code, os.strerror(code))
        return 0

    monkeypatch.setattr(fcntl, "fcntl", control)
    sync: Callable[[int], None] = choose_sync(lambda fd: calls.append(("plain", fd)), "darwin")
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            sync(7)
        assert calls == [("full", 7)]
        return
    sync(7)
    assert calls == ([("full", 7), ("plain", 7)] if code else [("full", 7)])


def test_elsewhere_the_plain_call_is_used() -> None:
    for platform in ("linux", "win32"):
        assert choose_sync(os.fsync, platform) is os.fsync


def test_without_any_module_for_locks_a_process_still_opens_a_directory_once(
    tmp_path: Path,
) -> None:
    script = (
        "import sys\n"
        "sys.modules['msvcrt'] = None\n"
        "import embedlog\n"
        "def refused():\n"
        "    try: embedlog.open(sys.argv[1]).close()\n"
        "    except embedlog.DirectoryLocked: return True\n"
        "    return False\n"
        "with embedlog.open(sys.argv[1]):\n"
        "    print(refused(), refused())\n"
        "print(refused())\n"
    )
    assert _on_windows(script, str(tmp_path)).split() == ["True", "True", "False"]


DIRECTORY = """
import sys, embedlog
path = sys.argv[1]
settings = {"log.segment.bytes": 1048576, "log.retention.bytes": 3000000,
            "log.initial.task.delay.ms": 0, "log.retention.check.interval.ms": 1,
            "log.segment.delete.delay.ms": 0}
for number in range(3):
    with embedlog.open(path, config=settings) as cluster, cluster.producer() as producer:
        try:
            embedlog.open(path)
        except embedlog.DirectoryLocked as error:
            assert "this process" in str(error), error
        else:
            raise AssertionError("not locked")
        sent = [producer.send("events", bytes(1000), partition=0) for _ in range(3000)]
        assert [future.result().offset for future in sent][-1] == 3000 * number + 2999
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("events", 0)])
            consumer.seek(("events", 0), 3000 * number)
            read = 0
            while read < 3000:
                read += sum(len(batch.records) for batch in consumer.poll_batches(1000))
        assert read == 3000, read
        with cluster.admin() as admin:
            admin.delete_records({("events", 0): 3000 * number + 10}).check()
            consumer = cluster.consumer()
            consumer.assign([("events", 0)])
            consumer.seek_to_end()
            for _ in range(20):
                consumer.poll(20)
            consumer.close()
"""

SIZES = """
import os, sys
print(sum(os.path.getsize(os.path.join(sys.argv[1], "events-0", name))
          for name in os.listdir(os.path.join(sys.argv[1], "events-0")) if name.endswith(".log")))
"""


@pytest.mark.slow
def test_on_windows_a_directory_is_written_read_cut_and_opened_again(tmp_path: Path) -> None:
    _on_windows(DIRECTORY, str(tmp_path))
    assert int(_on_windows(SIZES, str(tmp_path))) < 6_000_000


@pytest.mark.slow
def test_on_windows_a_log_is_recovered_after_a_kill(tmp_path: Path) -> None:
    crash = (
        "import os, sys, embedlog\n"
        "producer = embedlog.open(sys.argv[1]).producer()\n"
        "for _ in range(100): producer.send('events', b'v').result()\n"
        "os._exit(0)\n"
    )
    again = (
        "import sys, embedlog\n"
        "with embedlog.open(sys.argv[1]) as cluster, cluster.producer() as producer:\n"
        "    print(producer.send('events', b'v').result().offset)\n"
    )
    for number in range(2):
        _on_windows(crash, str(tmp_path))
        assert _on_windows(again, str(tmp_path)) == f"{101 * number + 100}\n"


LISTENER = """
import asyncio, sys, embedlog, embedlog.aio
with embedlog.open(sys.argv[1] or None, group_initial_rebalance_delay_ms=0) as cluster:
    address = cluster.listen().address
    with embedlog.Producer(address) as producer, embedlog.Consumer(
        address, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        for size in (10, 100_000, 900_000):
            producer.send("events", bytes(size)).result(10)
        consumer.subscribe(["events"])
        sizes = []
        while len(sizes) < 3:
            sizes += [len(record.value) for record in consumer.poll(1000)]
        assert sizes == [10, 100_000, 900_000], sizes

    async def main():
        async with embedlog.aio.Producer(address) as producer:
            return (await producer.send("events", b"v")).offset

    assert asyncio.run(main()) == 3
    try:
        import confluent_kafka
    except ImportError:
        sys.exit()
    told = []
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "log_level": 0})
    producer.produce("events", bytes(500_000), on_delivery=lambda error, _: told.append(error))
    assert producer.flush(10) == 0
    assert told == [None], told
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "c", "auto.offset.reset": "earliest",
     "log_level": 0}
    )
    consumer.subscribe(["events"])
    read = []
    while len(read) < 5:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        read.append(len(message.value()))
    consumer.close()
    assert read == [10, 100_000, 900_000, 1, 500_000], read
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["memory", "directory"])
def test_on_windows_a_listener_serves_every_client(place: str, tmp_path: Path) -> None:
    _on_windows(LISTENER, "" if place == "memory" else str(tmp_path))


@pytest.mark.slow
def test_on_windows_serve_runs_until_a_signal(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, threading\n"
        "from embedlog.cli import main\n"
        "signal.SIGBREAK = signal.SIGUSR1\n"
        "threading.Timer(1, os.kill, (os.getpid(), signal.SIGBREAK)).start()\n"
        "sys.exit(main(['serve', '--port', '0', '--data', sys.argv[1]]))\n"
    )
    assert _on_windows(script, str(tmp_path)).endswith("embedlog: stopped\n")
    assert ".kafka_cleanshutdown" in os.listdir(tmp_path)
