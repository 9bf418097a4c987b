"""A writer, readers and the cleaner in threads of their own, over real files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from embedlog.runtime import real_runtime
from embedlog.runtime.randomness import seeded
from embedlog.storage.cleaner.cleaner import LogCleaner
from embedlog.storage.cleaner.settings import DefaultSettings
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from tests.storage.cleaner.compaction import SETTINGS
from tests.storage.logs import PARTITION, append
from wire.records.batch import iter_batches

BATCHES = 1500
KEYS = 200


class Scene:
    """The log, and the last offset of each key that a reader may rely on."""

    def __init__(self, directory: Path, durability: str) -> None:
        config = LogConfig(**{**SETTINGS, "segment_bytes": 20_000, "durability": durability})
        # Few enough open files that readers, writer and cleaner take them from each other.
        self.manager = LogManager(real_runtime(), str(directory), config, open_files_max=4)
        self.log: Log = self.manager.get_or_create(PARTITION, config)
        self.written: dict[bytes, int] = {}
        self.reads = 0
        self.is_over = False
        self.errors: list[BaseException] = []

    def write(self) -> None:
        random = seeded(1)
        for number in range(BATCHES):
            keys = [b"k%d" % random.below(KEYS) for _ in range(1 + random.below(20))]
            with self.log.lock:
                first = append(self.log, *([b"%d" % number] * len(keys)), keys=keys)
                self.log.offsets.update_high_watermark(self.log.log_end_offset)
                self.written.update((key, first + n) for n, key in enumerate(keys))

    def read(self) -> None:
        random = seeded(2)
        while not self.is_over:
            with self.log.lock:
                end, expected = self.log.log_end_offset, dict(self.written)
            seen: dict[bytes | None, int] = {}
            offset, last = 0, -1
            while offset < end:
                max_bytes = (100, 1000, 50_000)[random.below(3)]
                found = self.log.reader.read(offset, max_bytes=max_bytes, end_offset=end)
                for one in iter_batches(found.records):
                    assert one.is_valid_crc()
                    for record in one.records():
                        if record.offset >= offset:
                            assert record.offset > last
                            last = record.offset
                            seen[record.key] = record.offset
                assert found.next_offset > offset
                offset = found.next_offset
            for key, least in expected.items():
                assert seen[key] >= least
            self.reads += 1

    def clean(self) -> None:
        manager = self.manager
        remove = lambda useless, _: manager.leftovers.remove_files(useless)
        cleaner = LogCleaner(
            manager.logs,
            DefaultSettings(),
            real_runtime().clock,
            checkpoint=manager.checkpoints.write_positions,
            remove=remove,
        )
        while not self.is_over:
            cleaner.run_once()
            assert not cleaner.uncleanable

    def run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)
            self.is_over = True


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_readers_see_a_whole_log_while_it_is_written_and_cleaned(
    tmp_path: Path, durability: str
) -> None:
    scene = Scene(tmp_path / "data", durability)
    threads = [
        threading.Thread(target=scene.run, args=[work])
        for work in (scene.read, scene.read, scene.clean)
    ]
    for thread in threads:
        thread.start()
    scene.run(scene.write)
    scene.is_over = True
    for thread in threads:
        thread.join()
    assert not scene.errors, scene.errors
    assert scene.log.offsets.cleaned_offset > 0
    assert scene.reads > 0
    scene.manager.close()
