"""A reader beside a process that appends, rolls, deletes segments, compacts and may be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import embedlog
from embedlog import errors
from embedlog.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TOPICS = {
    "plain": {},
    "short": {"retention.bytes": 2 << 20, "file.delete.delay.ms": 100},
    "compact": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": 0.01,
        "file.delete.delay.ms": 100,
    },
}
ROUNDS = 4_000
WRITER = f"""
import os, random, sys
import embedlog
random = random.Random(1)
cluster = embedlog.open(
    sys.argv[1], durability=sys.argv[2], log_segment_bytes=1 << 20, background=True,
    log_retention_check_interval_ms=200, log_initial_task_delay_ms=100, log_cleaner_backoff_ms=100,
)
for name, config in {TOPICS!r}.items():
    cluster.create_topic(name, 1, config=config)
print("ready", flush=True)
producer = cluster.producer()
for number in range({ROUNDS}):
    for name in {list(TOPICS)!r}:
        value = b"%s %d " % (name.encode(), number) + b"x" * random.randrange(4000)
        producer.send(name, value, key=b"%d" % random.randrange(50), partition=0)
    if number % 50 == 49:
        producer.flush()
if sys.argv[3] == "dies":
    os._exit(9)
producer.close()
cluster.close()
"""


def _read(part: embedlog.PartitionReader, position: int) -> int:
    """Read to the end; each record's value holds its offset. Return the next offset."""
    part.refresh()
    position = max(position, part.log_start_offset)
    try:
        for record in part.records(position):
            assert record.offset >= position
            topic, number, _ = bytes(record.value or b"").split(b" ")
            assert (topic.decode(), int(number)) == (part.topic, record.offset)
            position = record.offset + 1
    except errors.OffsetOutOfRange:
        assert part.topic == "short", "retention was faster"
    return position


@pytest.mark.parametrize("ending", ["closes", "dies"])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_every_read_record_is_as_the_writer_wrote_it(
    tmp_path: Path, durability: str, ending: str
) -> None:
    path = str(tmp_path / "data")
    command = [sys.executable, "-c", WRITER, path, durability, ending]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        with embedlog.open_reader(path) as reader:
            parts = [reader.partition(topic, 0) for topic in TOPICS]
            positions = dict.fromkeys(TOPICS, 0)
            while writer.poll() is None:
                for part in parts:
                    positions[part.topic] = _read(part, positions[part.topic])
                    _read(reader.partition(part.topic, 0), 0)
            for part in parts:
                assert _read(part, positions[part.topic]) == ROUNDS
    assert main(["verify", path]) == 0
    with embedlog.open(path, durability=durability) as cluster:
        assert cluster.health() == []
