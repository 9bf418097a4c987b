"""A crash at every file operation of a round: nothing is lost, nothing comes back wrong."""

from __future__ import annotations

from contextlib import suppress

import pytest

from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.cleaner.compaction import (
    BACKOFF_MS,
    Compacted,
    check_compacted,
    committed_rows,
    latest,
    rows,
)
from tests.storage.logs import append_marker, uncleanable
from tests.storage.test_interrupt import _interrupted_at as interrupted_at
from tests.support import sizes

RECORDS = 26


class Story:
    """Two rounds over records of every kind, and the readers' state at the end."""

    def __init__(self, durability: str) -> None:
        self.settings = {"durability": durability, "segment_bytes": 500}

    def begin(self, disk: SimFiles) -> Compacted:
        """Write, without a single slice of cleaning."""
        topic = Compacted(disk, **self.settings)
        sequence = 0
        for number in range(RECORDS):
            key = f"k{number % 6}"
            if number in (8, 19):
                topic.put((key, "bad"), producer=(9, 0, number // 19), transactional=True)
            elif number in (9, 20):
                append_marker(topic.log, 9, committed=False)
            elif number % 11 == 6:
                topic.put((key, None), ("gone", None))
            else:
                topic.put((key, f"{number}" * 15), producer=(7, 0, sequence))
                sequence += 1
        topic.log.roll()
        topic.put(("end", "end"))
        if self.settings["durability"] == "fsync":
            topic.log.durability.flush()
        topic.manager.checkpoints.write_positions()
        topic.manager.checkpoints.write_high_watermarks()
        return topic

    def go_on(self, topic: Compacted) -> None:
        """A round, more records, a second round, a clean stop."""
        topic.wait(BACKOFF_MS + 50)
        topic.put(("k1", "again"), ("k2", None))
        topic.log.roll()
        topic.wait(BACKOFF_MS + 50)
        topic.manager.close()

    def open(self, disk: SimFiles, **settings: object) -> Compacted:
        topic = Compacted(disk, **{**self.settings, **settings})
        assert topic.log.failure is None, topic.log.failure
        topic.commit()
        return topic

    def check(self, disk: SimFiles, versions: list[dict]) -> dict:
        """Open the directory after a crash: readers know one of `versions`, before and after
        cleaning.
        """
        topic = self.open(disk)
        names = topic.log.files.list(topic.log.directory)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        check_compacted(topic.log)
        known = latest(committed_rows(topic.log))
        assert known in versions, known
        topic.clean()
        check_compacted(topic.log)
        assert latest(committed_rows(topic.log)) == known
        names = topic.log.files.list(topic.log.directory)
        assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
        offsets = [offset for offset, _, _ in rows(topic.log)]
        assert offsets == sorted(set(offsets))
        return known


STEP = sizes.size(11, full=3)
every = pytest.mark.parametrize("step", [19, pytest.param(STEP, marks=pytest.mark.slow)])
"""Every third call that changes something, or fewer; `python -m tests.crash images` has all."""

CHANGES = ("open", "write", "sync", "truncate", "rename", "remove", "sync_directory")


def _versions(story: Story) -> tuple[list[dict], list[int]]:
    """Return the readers' state before and after the later records, and the calls that change
    something.
    """
    disk = SimFiles()
    topic = story.begin(disk)
    versions = [latest(committed_rows(topic.log))]
    start = disk.calls
    story.go_on(topic)
    end = disk.calls
    versions.append(latest(committed_rows(story.open(disk.survivor()).log)))
    assert versions[0] != versions[1]
    swaps = [path for call, path in disk.trace if call == "rename" and path.endswith(".swap")]
    assert len(swaps) >= 4
    return versions, [n for n in range(start, end) if disk.trace[n][0] in CHANGES]


@pytest.mark.slow
@every
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_killed_process_leaves_all_that_readers_knew(durability: str, step: int) -> None:
    story = Story(durability)
    versions, calls = _versions(story)
    for call in calls[::step]:
        for size in (40, None):
            disk = SimFiles()
            topic = story.begin(disk)
            disk.crash(call, after=True, size=size)
            with suppress(SimulatedCrash):
                story.go_on(topic)
            story.check(disk.survivor(), versions)


@pytest.mark.slow
@every
def test_a_loss_of_power_takes_nothing_that_was_synced(
    step: int,
) -> None:
    story = Story("fsync")
    versions, calls = _versions(story)
    random = seeded(30)
    for call in calls[::step]:
        disk = SimFiles()
        topic = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(topic)
        for image in disk.crash_images(random, 4):
            story.check(image, versions)


@pytest.mark.slow
@every
def test_a_loss_of_power_at_durability_os_takes_nothing_that_had_been_written_back(
    step: int,
) -> None:
    """Compaction replaces data that may have been durable for long: its output must be durable as
    well.
    """
    story = Story("os")
    versions, calls = _versions(story)
    random = seeded(31)
    for call in calls[::step]:
        disk = SimFiles()
        topic = story.begin(disk)
        topic.log.durability.flush()
        topic.manager.checkpoints.write_positions()
        for name in ("", "data", topic.log.directory):
            disk.sync_directory(name)
        shift = disk.calls - calls[0]
        disk.crash(call + shift)
        with suppress(SimulatedCrash):
            story.go_on(topic)
        for image in disk.crash_images(random, 4):
            story.check(image, versions)


@pytest.mark.slow
@every
def test_a_recovery_that_crashes_while_it_completes_a_swap_is_completed_by_the_next(
    step: int,
) -> None:
    story = Story("fsync")
    versions, calls = _versions(story)
    interrupted = 0
    for call in calls[::step]:
        disk = SimFiles()
        topic = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(topic)
        names = disk.survivor().list(topic.log.directory)
        if not any(name.endswith(".swap") for name in names):
            continue
        interrupted += 1
        for number in range(interrupted % 3, 60, 3):
            broken = disk.survivor()
            broken.crash(number)
            try:
                story.open(broken)
            except SimulatedCrash:
                story.check(broken.survivor(), versions)
            else:
                break
    assert interrupted > 20 // step


@every
def test_gaps_are_no_rot_when_the_topic_is_not_compacted_after_the_crash(step: int) -> None:
    story = Story("os")
    versions, calls = _versions(story)
    for call in calls[::step]:
        disk = SimFiles()
        topic = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(topic)
        plain = story.open(disk.survivor(), cleanup_policy="delete", retention_ms=-1)
        assert latest(committed_rows(plain.log)) in versions


@pytest.mark.slow
def test_indexes_of_former_segments_do_not_outlive_a_swap_that_recovery_completes() -> None:
    story = Story("os")
    _, calls = _versions(story)
    found = 0
    for call in calls:
        disk = SimFiles()
        topic = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(topic)
        survivor = disk.survivor()
        names = survivor.list(topic.log.directory)
        bases = [name[:20] for name in names if name.endswith(".log.swap")]
        if not bases or f"{bases[0]}.index" not in names:
            continue
        found += 1
        story.open(survivor)
        names = survivor.list(topic.log.directory)
        assert f"{bases[0]}.log" in names
        assert f"{bases[0]}.index" not in names
    assert found > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [1009, pytest.param(sizes.size(907, full=503), marks=pytest.mark.slow)]
)
def test_an_interrupt_anywhere_in_a_round_loses_nothing(step: int) -> None:
    """Ctrl-C in the thread that happens to clean: the round is over, or the log refuses writes."""
    story = Story("os")
    poisoned = 0
    opcode = step
    while True:
        topic = story.begin(SimFiles())
        known = latest(committed_rows(topic.log))
        interrupted = interrupted_at(opcode, lambda topic=topic: topic.wait(BACKOFF_MS + 50))
        if not interrupted:
            break
        assert latest(committed_rows(topic.log)) == known
        if topic.log.failure is None:
            topic.wait(2 * BACKOFF_MS)
            assert topic.log.offsets.cleaned_offset == topic.log.segments[-1].base_offset
            assert uncleanable(topic.manager) == {}
            check_compacted(topic.log)
        else:
            assert "swap" in str(topic.log.failure)
            poisoned += 1
        assert latest(committed_rows(topic.log)) == known
        story.check(topic.runtime.files.survivor(), [known])
        opcode += step
    assert opcode > 20 * step
