"""A writer that is killed for real leaves its acknowledged records, on a real disk."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.runtime.randomness import seeded
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from tests.storage.logs import append, check, values

PARTITION = TopicPartition("events", 0)
ROUNDS = 6


def _open(directory: str, durability: str) -> LogManager:
    config = LogConfig(durability=durability, segment_bytes=20_000, index_interval_bytes=500)
    return LogManager(real_runtime(), directory, config)


def _write_for_ever(directory: str, durability: str, pipe: int) -> None:
    """The child: append numbered values, and print each number once it is acknowledged."""
    log = _open(directory, durability).get_or_create(PARTITION)
    number = log.log_end_offset
    while True:
        append(log, b"%d|" % number * (1 + number % 50))
        log.durability.sync(number + 1) if durability == "fsync" else None
        number += 1
        os.write(pipe, b"%d\n" % number)


def _run_and_kill(directory: str, durability: str, acknowledged_min: int) -> int:
    """Let a writer run until it has acknowledged that many, kill it, return how many it had."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _write_for_ever(directory, durability, writer)
        finally:
            os._exit(1)
    os.close(writer)
    received = b""
    acknowledged = 0
    try:
        while acknowledged < acknowledged_min:
            part = os.read(reader, 4096)
            assert part, "the writer ended by itself"
            received += part
            acknowledged = int(received.rpartition(b"\n")[0].rpartition(b"\n")[2] or 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    while part := os.read(reader, 4096):
        received += part
    os.close(reader)
    return int(received.rpartition(b"\n")[0].rpartition(b"\n")[2])


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_writer_leaves_every_acknowledged_record(tmp_path: Path, durability: str) -> None:
    random = seeded(int.from_bytes(durability.encode()))
    directory = f"{tmp_path}/data"
    acknowledged = 0
    for _ in range(ROUNDS):
        wanted = acknowledged + 1 + random.below(120)
        acknowledged = _run_and_kill(directory, durability, wanted)
        owner = _open(directory, durability)
        assert not owner.directory.clean
        log = owner.get(PARTITION)
        assert log is not None
        assert log.failure is None
        check(log)
        found = values(log)
        assert found == [b"%d|" % n * (1 + n % 50) for n in range(len(found))]
        assert len(found) >= acknowledged
        acknowledged = len(found)
        owner.close()
    assert len([name for name in os.listdir(f"{directory}/{PARTITION}") if ".log" in name]) > 1
