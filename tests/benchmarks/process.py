"""Whole processes: start to first record, memory of an idle server, many partitions."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import embedlog
from tests.benchmarks.table import show

ROUNDS = 15
FIRST_RECORD = """
import embedlog
with embedlog.open({path!r}) as cluster:
    with cluster.producer() as producer:
        producer.send("events", b"value").result()
    consumer = cluster.consumer()
    consumer.assign([("events", 0)])
    consumer.seek_to_beginning()
    assert [record.value for record in consumer.poll(1000)] == [b"value"]
"""
IDLE_SECONDS = 5
PARTITIONS = 10_000


def seconds(code: str) -> float:
    """Return the seconds from the start of an interpreter to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def start_up(root: Path) -> None:
    """Print import, open, and the first record acknowledged and read, against the bare
    interpreter.
    """
    best = {"bare interpreter": 9.0, "embedlog, in memory": 9.0, "embedlog, new directory": 9.0}
    for number in range(ROUNDS):
        codes = {
            "bare interpreter": "pass",
            "embedlog, in memory": FIRST_RECORD.format(path=None),
            "embedlog, new directory": FIRST_RECORD.format(path=str(root / str(number))),
        }
        for name, code in codes.items():
            best[name] = min(best[name], seconds(code))
    show("whole process: open, one record written and read", best, ours="embedlog, in memory",
         unit="ms")  # fmt: skip


def _status(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def _wake_ups(pid: int) -> int:
    """Return the voluntary context switches of all threads: each is a wake-up that slept again."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total


def idle_server(root: Path) -> None:
    """Print memory, threads, descriptors and wake-ups of an idle `embedlog serve`."""
    command = [sys.executable, "-m", "embedlog", "serve", "--port", "0", "--data",
               str(root / "idle")]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        time.sleep(1)
        before = _wake_ups(server.pid)
        time.sleep(IDLE_SECONDS)
        woken = _wake_ups(server.pid) - before
        status = _status(server.pid)
        descriptors = len(os.listdir(f"/proc/{server.pid}/fd"))
        server.terminate()
    print(f"\nembedlog serve, idle for {IDLE_SECONDS} s")
    print(f"  resident memory {int(status['VmRSS'].split()[0]) / 1024:.1f} MB, "
          f"threads {status['Threads']}, descriptors {descriptors}, wake-ups {woken}")  # fmt: skip


def many_partitions(path: Path) -> None:
    """Print the stop and open of a directory of 10,000 partitions with one record each, and an idle
    stop.
    """
    took: dict[str, float] = {}
    with_records = embedlog.open(path, durability="os")
    with_records.create_topic("events", PARTITIONS)
    with with_records.producer() as producer:
        for partition in range(PARTITIONS):
            producer.send("events", b"x" * 100, partition=partition)
    started = time.perf_counter()
    with_records.close()
    took["stop, a record in each"] = time.perf_counter() - started
    started = time.perf_counter()
    again = embedlog.open(path, durability="os")
    took["open"] = time.perf_counter() - started
    started = time.perf_counter()
    again.close()
    took["stop, untouched"] = time.perf_counter() - started
    show(f"open/stop {PARTITIONS:,} partitions, level os", took, ours="open", unit="ms")


def main() -> None:
    """Print all tables of whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        start_up(Path(folder))
        idle_server(Path(folder))
        many_partitions(Path(folder) / "many")
