"""A log moves to and fro while threads append to it and read it, former segments included."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from embedlog.runtime import real_runtime
from embedlog.storage.data_directories import DataDirectories
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.relocation.relocations import Relocations
from tests.storage.logs import PARTITION, append, values
from wire.records.batch import iter_batches

MOVES = 20
RECORDS = 100
"""Records that are appended during each move."""
SECONDS_MAX = 60


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_nobody_notices_that_a_log_moves(tmp_path: Path, durability: str) -> None:
    runtime = real_runtime()
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500, durability=durability)
    managers = [LogManager(runtime, str(tmp_path / name), config) for name in "ab"]
    both = DataDirectories(managers)
    log = both.get_or_create(PARTITION)
    relocations = Relocations(runtime, both, lambda: None, slice_size=10_000, last_size=1000)
    is_over = threading.Event()
    failures: list[BaseException] = []
    count, allowed = 0, threading.Semaphore(RECORDS)

    def write() -> None:
        nonlocal count
        while not is_over.is_set():
            if not allowed.acquire(timeout=0.1):
                continue  # a log that grows faster than it is copied does not move
            with log.lock:
                append(log, b"%d" % count * 20)
                count += 1
            if durability == "fsync":
                log.durability.sync(count)
            with log.lock:
                log.offsets.commit(durability == "fsync")

    def read(seed: int) -> None:
        chance = random.Random(seed)
        segments = log.segments
        while not is_over.is_set():
            end = log.offsets.high_watermark
            offset = chance.randrange(max(1, end))
            found = log.reader.read(offset, max_bytes=2000, end_offset=end)
            for batch in iter_batches(found.records):
                [record] = batch.records()
                assert record.value == b"%d" % record.offset * 20
            if chance.random() < 0.1:
                segment = chance.choice(segments)
                size = segment.size
                [first, *_] = iter_batches(segment.file.view(0, size)) if size else [None]
                assert first is None or first.base_offset == segment.base_offset
            if chance.random() < 0.02:
                segments = log.segments
                for segment in segments[:-1]:
                    segment.file.release()

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)
            is_over.set()

    jobs = [write, lambda: read(1), lambda: read(2)]
    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        for number in range(MOVES):
            target = managers[(number + 1) % 2].directory.path
            relocations.start(PARTITION, target)
            while relocations.run_once(0) is not None:
                assert not failures, failures
            assert log.directory.startswith(target)
            allowed.release(RECORDS)
    finally:
        is_over.set()
        for thread in threads:
            thread.join(SECONDS_MAX)
        relocations.stop()
    assert not failures, failures
    assert values(log) == [b"%d" % number * 20 for number in range(count)]
    assert relocations.failed == {}
    both.close()
    assert sorted(path.name for path in tmp_path.glob("*/events-0*")) == ["events-0"]
