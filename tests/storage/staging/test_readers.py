"""Readers of other processes beside a commit: at any moment they see all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from embedlog.errors import CorruptRecord, KafkaError
from embedlog.reader.reader import LogDirectoryReader, PartitionReader
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash, sim_runtime
from tests.storage.logs import DATA
from tests.storage.staging.adoption import A, B, C
from tests.storage.staging.test_crash import AFTER, BEFORE, CHANGES, Story, both, levels


class WatchedFiles(SimFiles):
    """Calls `watch` before every call of others that changes something."""

    watch: Callable[[], None] | None = None

    def begin(self, call: str, path: str) -> int | None:
        watch = self.watch
        if watch is not None and call in CHANGES:
            self.watch = None
            try:
                watch()
            finally:
                self.watch = watch
        return super().begin(call, path)


def _seen(parts: list[PartitionReader]) -> dict:
    return {
        each: [bytes(record.value or b"") for record in part.records()]
        for each, part in zip((A, B, C), parts, strict=True)
    }


def _snapshot(disk: SimFiles) -> list[PartitionReader]:
    return LogDirectoryReader(DATA, runtime=sim_runtime(files=disk)).snapshot((A, B, C))


def _sync_names(disk: SimFiles) -> int:
    """Make the files of an empty log durable as well; return how many calls that took."""
    before = disk.calls
    for topic, partition in (A, B, C):
        disk.sync_directory(f"{DATA}/{topic}-{partition}")
    return disk.calls - before


@levels
@both
def test_a_snapshot_has_all_of_a_commit_or_nothing_at_any_moment(
    smallest: int, durability: str
) -> None:
    story = Story(smallest, durability)
    disk = WatchedFiles()
    owner = story.begin(disk)
    found = []
    old = _snapshot(disk)

    def look() -> None:
        found.append(_seen(_snapshot(disk)))
        for part in old:
            part.refresh()
        assert _seen(old) == found[-1]

    disk.watch = look
    story.go_on(owner)
    look()
    changes = [now for now, before in zip(found[1:], found, strict=False) if now != before]
    assert found[0] == BEFORE
    assert changes == [AFTER]


@pytest.mark.slow
@levels
@both
def test_a_snapshot_has_all_or_nothing_while_a_commit_is_undone(
    smallest: int, durability: str
) -> None:
    story = Story(smallest, durability)
    clean = SimFiles()
    owner = story.begin(clean)
    start = clean.calls
    story.go_on(owner)
    for call in range(start, clean.calls, 7):
        disk = WatchedFiles()
        owner = story.begin(disk)
        old = _snapshot(disk)
        disk.fail(call, 28)

        def look(disk: WatchedFiles = disk, old: list[PartitionReader] = old) -> None:
            seen = _seen(_snapshot(disk))
            assert seen in (BEFORE, AFTER)
            for part in old:
                part.refresh()
            assert _seen(old) == seen

        disk.watch = look
        with suppress(KafkaError, OSError):
            story.go_on(owner)


@pytest.mark.slow
@levels
@both
def test_a_reader_of_a_dead_owners_directory_has_all_or_nothing(
    smallest: int, durability: str
) -> None:
    story = Story(smallest, durability)
    clean = SimFiles()
    owner = story.begin(clean)
    start = clean.calls
    story.go_on(owner)
    random = seeded(11)
    for call in range(start, clean.calls, 5):
        disk = SimFiles()
        owner = story.begin(disk)
        disk.crash(call + _sync_names(disk), after=True)
        with suppress(SimulatedCrash):
            story.go_on(owner)
        assert _seen(_snapshot(disk.survivor())) in (BEFORE, AFTER)
        for image in disk.crash_images(random, 2):
            assert _seen(_snapshot(image)) in (BEFORE, AFTER)


def test_the_reader_of_a_partition_without_a_part_in_the_commit_is_not_held_up() -> None:
    story = Story(0, "os")
    disk = SimFiles()
    owner = story.begin(disk)
    disk.crash(disk.calls + 60, after=True)
    with suppress(SimulatedCrash):
        story.submit(owner, 2, {A: [[b"a1"], [b"a2"]], B: [[b"b1"]]})
    reader = LogDirectoryReader(DATA, runtime=sim_runtime(files=disk.survivor()))
    assert owner.adopter.is_pending
    assert [reader.partition(*each).high_watermark for each in (A, B, C)] == [1, 0, 1]


def _damage(disk: SimFiles, suffix: str, content: bytes) -> None:
    file = disk.open(f"{DATA}/embedlog-commit{suffix}")
    file.truncate(0)
    if content:
        file.write([content], 0)


damages = pytest.mark.parametrize("damage", [b"", b"embedlog", bytes(200)])


@pytest.mark.slow
@damages
def test_a_damaged_record_of_commits_is_replaced_by_what_stands_beside_it(damage: bytes) -> None:
    story = Story(0, "os")
    clean = SimFiles()
    owner = story.begin(clean)
    start = clean.calls
    story.go_on(owner)
    for call in range(start + 20, clean.calls, 9):
        disk = SimFiles()
        owner = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(owner)
        image = disk.survivor()
        _damage(image, "", damage)
        assert _seen(_snapshot(image)) in (BEFORE, AFTER)
        story.check(image)


@damages
def test_records_of_commits_that_are_all_damaged_are_told_and_not_believed(damage: bytes) -> None:
    story = Story(0, "os")
    disk = SimFiles()
    story.go_on(story.begin(disk))
    image = disk.survivor()
    for suffix in ("", ".done", ".undone"):
        if image.stat(f"{DATA}/embedlog-commit{suffix}") is not None:
            _damage(image, suffix, damage)
    with pytest.raises(CorruptRecord, match="embedlog-commit"):
        _snapshot(image)
    with pytest.raises(CorruptRecord, match="embedlog-commit"):
        story.begin(image)
