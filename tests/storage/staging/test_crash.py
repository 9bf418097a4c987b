"""A crash at every file operation of a commit: all of it is there or none, never twice."""

from __future__ import annotations

from contextlib import suppress

import pytest

from embedlog.errors import KafkaError
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.logs import append, check
from tests.storage.staging.adoption import EVERYTHING, NOTHING, A, B, C, Owner, stage
from tests.support import sizes

BEFORE = {A: [b"a0"], B: [], C: [b"c0"]}
AFTER = {A: [b"a0", b"a1", b"a2", b"a3"], B: [b"b1", b"b2"], C: [b"c0", b"c1"]}
CHANGES = ("open", "write", "sync", "truncate", "rename", "remove", "sync_directory")

both = pytest.mark.parametrize("smallest", [EVERYTHING, NOTHING], ids=["renamed", "appended"])
levels = pytest.mark.parametrize("durability", ["os", "fsync"])
every = pytest.mark.parametrize(
    "step", [19, pytest.param(sizes.size(7, full=2), marks=pytest.mark.slow)]
)


class Story:
    """A commit of three partitions over logs with records; one partition gets two files."""

    def __init__(self, smallest: int, durability: str) -> None:
        self.settings = {"renamed_size_min": smallest, "durability": durability}

    def begin(self, disk: SimFiles) -> Owner:
        """Append records, make a first commit, and stage the second one."""
        owner = Owner(disk, **self.settings)
        append(owner.logs[A], b"a0")
        owner.logs[A].offsets.commit(False)
        self.submit(owner, 1, {C: [[b"c0"]]})
        for log in owner.logs.values():
            log.durability.flush()
            log.offsets.commit(True)
        owner.manager.checkpoints.write_positions()
        return owner

    def submit(self, owner: Owner, version: int, parts: dict) -> None:
        """Stage and commit, as a job and its retries do."""
        job = f"job-{version}-{owner.disk.calls}"
        files = stage(owner.disk, job, parts, size_max=100)
        owner.adopt(job, files, application="query", version=version)

    def go_on(self, owner: Owner) -> None:
        """The second commit."""
        self.submit(owner, 2, {A: [[b"a1", b"a2"], [b"a3"]], B: [[b"b1", b"b2"]], C: [[b"c1"]]})

    def check(self, disk: SimFiles) -> bool:
        """Check for all or none; a second attempt makes it all. Return which it was."""
        owner = Owner(disk, **self.settings)
        for log in owner.logs.values():
            assert log.failure is None, log.failure
            check(log)
        seen = owner.seen()
        assert seen in (BEFORE, AFTER), seen
        self.go_on(owner)
        assert owner.seen() == AFTER
        for log in owner.logs.values():
            append(log, b"next")
            check(log)
        owner.manager.close()
        again = Owner(disk.survivor(), **self.settings)
        assert again.seen() == {each: [*those, b"next"] for each, those in AFTER.items()}
        return seen == AFTER


def _calls(story: Story) -> list[int]:
    """The calls of the second commit that change something."""
    disk = SimFiles()
    owner = story.begin(disk)
    start = disk.calls
    assert owner.seen() == BEFORE
    story.go_on(owner)
    assert owner.seen() == AFTER
    return [n for n in range(start, disk.calls) if disk.trace[n][0] in CHANGES]


@pytest.mark.slow
@every
@levels
@both
def test_a_killed_owner_leaves_all_of_a_commit_or_nothing(
    smallest: int, durability: str, step: int
) -> None:
    story = Story(smallest, durability)
    calls = _calls(story)
    found = set()
    for call in calls[::step] + calls[-3:]:
        for size in (10, None):
            disk = SimFiles()
            owner = story.begin(disk)
            disk.crash(call, after=True, size=size)
            with suppress(SimulatedCrash):
                story.go_on(owner)
            found.add(story.check(disk.survivor()))
    assert found == {True, False}


@pytest.mark.slow
@every
@levels
@both
def test_a_loss_of_power_leaves_all_of_a_commit_or_nothing(
    smallest: int, durability: str, step: int
) -> None:
    story = Story(smallest, durability)
    random = seeded(7)
    for call in _calls(story)[::step]:
        disk = SimFiles()
        owner = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(owner)
        for image in disk.crash_images(random, 5):
            story.check(image)


@pytest.mark.slow
@levels
@both
def test_what_was_committed_survives_a_loss_of_power(smallest: int, durability: str) -> None:
    story = Story(smallest, durability)
    disk = SimFiles()
    story.go_on(story.begin(disk))
    for image in disk.crash_images(seeded(3), 30):
        assert story.check(image)


@every
@both
def test_a_crash_during_the_recovery_of_a_commit_changes_nothing(smallest: int, step: int) -> None:
    story = Story(smallest, "os")
    for call in _calls(story)[:: 2 * step]:
        disk = SimFiles()
        owner = story.begin(disk)
        disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(owner)
        for again in range(5, 60, 11):
            second = disk.survivor()
            second.crash(again, after=True)
            with suppress(SimulatedCrash):
                Owner(second, **story.settings)
            story.check(second.survivor())


@every
@both
def test_a_disk_that_refuses_for_once_leaves_nothing_of_a_commit(smallest: int, step: int) -> None:
    story = Story(smallest, "os")
    for errno in (28, 5):
        for call in _calls(story)[::step]:
            disk = SimFiles()
            owner = story.begin(disk)
            disk.fail(call, errno)
            with suppress(KafkaError, OSError):
                story.go_on(owner)
            disk.heal()
            assert owner.seen() in (BEFORE, AFTER)
            if errno == 28 and all(log.failure is None for log in owner.logs.values()):
                story.go_on(owner)
                assert owner.seen() == AFTER
            story.check(disk.survivor())


@every
@levels
@both
def test_a_commit_that_was_refused_does_not_take_what_others_append_for_its_own(
    smallest: int, durability: str, step: int
) -> None:
    story = Story(smallest, durability)
    for call in _calls(story)[::step]:
        disk = SimFiles()
        owner = story.begin(disk)
        disk.fail(call, 5)
        is_refused = False
        try:
            story.go_on(owner)
        except (KafkaError, OSError):
            is_refused = True
        disk.heal()
        for log in owner.logs.values():
            with suppress(KafkaError):
                for number in range(9):
                    append(log, b"other%d" % number)
                log.durability.flush()
                log.offsets.commit(True)
        again = Owner(disk.survivor(), **story.settings)
        if all(log.failure is None for log in again.logs.values()):
            story.go_on(again)
            for each, log in again.logs.items():
                check(log)
                found = [value for value in again.seen()[each] if not value.startswith(b"other")]
                assert found == AFTER[each], (call, is_refused)
