"""The oracle reads files of the project, and finds damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import embedlog
from tests.crash.oracle import CommittedOffset, committed_offsets, read_log


def _write(directory: Path, **settings: object) -> list[tuple[int, bytes | None, bytes | None]]:
    sent = []
    with embedlog.open(directory, durability="os") as cluster:
        cluster.create_topic("events", 1, config={"segment.bytes": 1 << 20})
        with cluster.producer(enable_idempotence=True, **settings) as producer:
            for number in range(60):
                key = b"key-%d" % number if number % 3 else None
                value = b"%d|" % number + os.urandom(50_000) if number % 5 else None
                headers = [("name", b"%d" % number), ("none", None)]
                record = producer.send("events", value, key=key, headers=headers).result()
                sent.append((record.offset, key, value))
        with cluster.consumer(group_id="group") as consumer:
            consumer.assign([("events", 0)])
            consumer.commit({("events", 0): 42})
    return sent


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_sent_records_are_read(tmp_path: Path, codec: str) -> None:
    sent = _write(tmp_path / "data", compression_type=codec)
    log = read_log(f"{tmp_path}/data/events-0")
    assert log.problems == ()
    assert len(log.segments) > 1
    assert [segment.stopped for segment in log.segments] == ["end"] * len(log.segments)
    records = list(log.records())
    assert [(r.offset, r.key, r.value) for r in records] == sent
    assert [r.producer[2] for r in records] == list(range(60))
    assert records[7].headers == ((b"name", b"7"), (b"none", None))
    assert log.end_offset == 60


def test_committed_offsets_are_read(tmp_path: Path) -> None:
    _write(tmp_path / "data")
    found: dict[CommittedOffset, int] = {}
    for name in os.listdir(tmp_path / "data"):
        if name.startswith("__consumer_offsets-"):
            committed_offsets(f"{tmp_path}/data/{name}", found)
    assert found == {CommittedOffset("group", "events", 0): 42}


@pytest.mark.slow
def test_each_damaged_byte_is_found(tmp_path: Path) -> None:
    """Bytes of the leader epoch are excluded, because no checksum covers them."""
    _write(tmp_path / "data")
    path = sorted((tmp_path / "data/events-0").glob("*.log"))[0]
    whole = path.read_bytes()
    size = read_log(str(path.parent)).segments[0].batches[0].size
    for position in [*range(12), *range(16, size)]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        log = read_log(str(path.parent))
        assert log.problems, position
