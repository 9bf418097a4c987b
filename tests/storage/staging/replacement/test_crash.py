"""A crash at every file operation of a rewriting: each record is there, or erased, and once."""

from __future__ import annotations

from contextlib import suppress

import pytest

from embedlog.errors import KafkaError
from embedlog.runtime.randomness import seeded
from embedlog.storage.staging.rewriting import RewriteRules
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.cleaner.compaction import check_compacted, committed_rows, rows
from tests.storage.logs import append
from tests.storage.staging.replacement.replacement import ERASED, Owned, without
from tests.support import sizes
from wire.records.format import Codec

RULES = RewriteRules(erased=[ERASED], codec=Codec.GZIP, batch_size=1 << 14)
CHANGES = ("open", "write", "sync", "truncate", "rename", "remove", "sync_directory")

LEVELS = ("os", "fsync")
EVERY = [pytest.param(each, sizes.size(7, full=2), marks=pytest.mark.slow) for each in LEVELS]
"""Levels with the steps between crashes. Fast tests take the level that can lose the most."""
at_os = pytest.mark.parametrize(("durability", "step"), [("os", 31), *EVERY])
at_fsync = pytest.mark.parametrize(("durability", "step"), [("fsync", 31), *EVERY])
every = pytest.mark.parametrize(
    "step", [31, pytest.param(sizes.size(7, full=2), marks=pytest.mark.slow)]
)


class Story:
    """A log of everything, from which a key is erased."""

    def __init__(self, durability: str) -> None:
        self.durability = durability
        owned = Owned(durability=durability)
        owned.fill()
        self.before = rows(owned.log)
        self.active = owned.log.segments[-1].base_offset
        self.after = without(self.before, ERASED, below=self.active)
        self.aborted = owned.log.transactions.aborted(0, owned.log.log_end_offset)
        assert self.aborted
        assert len(self.after) < len(self.before)
        self.committed = without(committed_rows(owned.log), ERASED, below=self.active)

    def begin(self) -> Owned:
        owned = Owned(durability=self.durability)
        owned.fill()
        # The rewritten segments were on the disk before: losing them would be another story.
        owned.log.durability.flush()
        owned.manager.checkpoints.write_positions()
        for name in ("", "data", owned.log.directory):
            owned.disk.sync_directory(name)
        return owned

    def go_on(self, owned: Owned) -> None:
        owned.rewrite(RULES, job=f"job-{owned.disk.calls}")

    def calls(self) -> list[int]:
        """The calls of the job that change something."""
        owned = self.begin()
        start = owned.disk.calls
        self.go_on(owned)
        return [n for n in range(start, owned.disk.calls) if owned.disk.trace[n][0] in CHANGES]

    def check(self, disk: SimFiles) -> int:
        """Open the directory, run the job again; return how many segments were done before."""
        owned = Owned(disk, durability=self.durability)
        log = owned.log
        assert log.failure is None, log.failure
        names = disk.list(log.directory)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        found = rows(log)
        left = [row for row in self.before if row not in self.after]
        assert [row for row in found if row not in left] == self.after
        assert [row for row in found if row in self.before] == found
        assert not _damaged(owned)
        self.go_on(owned)
        assert rows(log) == self.after
        assert committed_rows(log) == self.committed
        assert log.transactions.aborted(0, log.log_end_offset) == self.aborted
        check_compacted(log)
        append(log, b"next")
        owned.manager.close()
        assert not _damaged(owned)
        return len(self.before) - len(found)


def _damaged(owned: Owned) -> list[str]:
    """Damaged segments. A loss of power may damage hints, which are never synced."""
    return [each for each in owned.findings() if ".log at" in each]


@pytest.mark.slow
@at_os
def test_a_killed_owner_leaves_each_segment_as_it_was_or_as_it_shall_be(
    durability: str, step: int
) -> None:
    story = Story(durability)
    calls = story.calls()
    found = set()
    for call in calls[::step] + calls[-3:]:
        for size in (10, None):
            owned = story.begin()
            owned.disk.crash(call, after=True, size=size)
            with suppress(SimulatedCrash):
                story.go_on(owned)
            found.add(story.check(owned.disk.survivor()))
    assert {0, len(story.before) - len(story.after)} < found


@pytest.mark.slow
@at_fsync
def test_a_loss_of_power_leaves_each_segment_as_it_was_or_as_it_shall_be(
    durability: str, step: int
) -> None:
    story = Story(durability)
    random = seeded(11)
    for call in story.calls()[::step]:
        owned = story.begin()
        owned.disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(owned)
        for image in owned.disk.crash_images(random, 4):
            story.check(image)


@pytest.mark.parametrize("durability", LEVELS)
def test_what_was_erased_does_not_come_back_after_a_loss_of_power(durability: str) -> None:
    story = Story(durability)
    owned = story.begin()
    story.go_on(owned)
    gone = len(story.before) - len(story.after)
    for image in owned.disk.crash_images(seeded(5), 10):
        assert story.check(image) == gone


@pytest.mark.slow
@every
@pytest.mark.parametrize("errno", [28, 5])
def test_a_disk_that_refuses_for_once_loses_nothing(errno: int, step: int) -> None:
    story = Story("os")
    pending = 0
    # A full disk leaves a swap pending at four calls in a row, several times in all.
    for call in story.calls()[:: step if errno == 5 else min(step, 5)]:
        owned = story.begin()
        owned.disk.fail(call, errno)
        with suppress(KafkaError, OSError):
            story.go_on(owned)
        owned.disk.heal()
        assert committed_rows(owned.log) is not None
        if owned.log.failure is None:
            pending += owned.replacer.is_pending
            owned.replacer.complete()
            assert not owned.log.chain.is_swapping
            story.go_on(owned)
            assert rows(owned.log) == story.after
        story.check(owned.disk.survivor())
    assert pending > 0 or errno == 5
