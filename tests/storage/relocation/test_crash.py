"""A crash at every file operation of a move: one log, whole, in one of the two directories."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any

import pytest

from embedlog.errors import EmbedlogError
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from tests.storage.cleaner.compaction import Row
from tests.storage.logs import append
from tests.storage.relocation.relocation import HERE, THERE, Metadata, Moving
from tests.support import sizes

CHANGES = ("open", "write", "sync", "truncate", "rename", "remove", "sync_directory")
SLICE_SIZE = 500
START = 3

STEP = sizes.size(11, full=3)
EVERY = [pytest.param(each, STEP, marks=pytest.mark.slow) for each in ("os", "fsync")]
"""Levels with the steps between crashes. Fast tests take the level that can lose the most."""
at_os = pytest.mark.parametrize(("durability", "step"), [("os", 121), *EVERY])
at_fsync = pytest.mark.parametrize(("durability", "step"), [("fsync", 121), *EVERY])


class Story:
    """A log moves during appends; the acknowledged records are known at every moment."""

    def __init__(self, durability: str) -> None:
        self.durability = durability
        self.metadata = Metadata()
        self.acknowledged: tuple[Any, ...] = ()
        """The records that a loss of power must leave."""
        self.published: tuple[Any, ...] = ()
        """The records that the end of the process must leave."""

    def begin(self) -> Moving:
        moving = Moving(durability=self.durability, slice_size=SLICE_SIZE)
        self.metadata = moving.metadata
        # The moved log was on the disk before: losing it would be another story.
        moving.log.durability.flush()
        for manager in moving.both.managers:
            manager.checkpoints.write_positions()
        for name in ("", HERE, THERE, moving.log.directory):
            moving.disk.sync_directory(name)
        self.acknowledged = self.published = moving.told()
        return moving

    def go_on(self, moving: Moving) -> None:
        moving.move()
        for number in range(3):
            # A loss of power would take unsynced data, moved or not.
            append(moving.log, b"behind %d" % number, epoch=1)
            moving.commit()
            self.published = moving.told()
            if self.durability == "fsync":
                self.acknowledged = self.published

    def calls(self) -> list[int]:
        """The calls that change something."""
        moving = self.begin()
        start = moving.disk.calls
        self.go_on(moving)
        trace = moving.disk.trace
        return [n for n in range(start, moving.disk.calls) if trace[n][0] in CHANGES]

    def check(self, disk: SimFiles, before: Callable[[Moving], object]) -> str:
        """Open the directories; return where the log was. The move and the log continue."""
        metadata = copy(self.metadata)
        moving = Moving(disk, durability=self.durability, slice_size=SLICE_SIZE, metadata=metadata)
        assert moving.log.failure is None, moving.log.failure
        place = moving.place
        before(moving)
        moving.resume()
        moving.go_on()
        moving.check()
        moving.move(moving.here)
        moving.move()
        append(moving.log, b"next", epoch=moving.log.epochs.latest)
        moving.commit()
        told = moving.told()
        moving.check()
        moving.close()
        again = Moving(moving.disk.survivor(), durability=self.durability, metadata=metadata)
        assert again.place == THERE
        assert _rows(again.told()) == _rows(told)
        assert again.told()[3:] == told[3:]
        return place


def _rows(told: tuple[Any, ...]) -> list[Row]:
    """Return the readable rows without deleted ones: at durability os these may come back."""
    return [row for row in told[0] if row[0] >= START]


def _has(acknowledged: list[Row]) -> Callable[[Moving], None]:
    def check(opened: Moving) -> None:
        assert _rows(opened.told())[: len(acknowledged)] == acknowledged

    return check


@pytest.mark.slow
@at_os
def test_a_killed_owner_leaves_the_log_in_one_of_the_two(durability: str, step: int) -> None:
    story = Story(durability)
    calls = story.calls()
    places = set()
    for call in [*calls[::step], *calls[-45 :: max(1, step // 12)]]:
        for after in (False, True):
            moving = story.begin()
            moving.disk.crash(call, after=after)
            with suppress(SimulatedCrash):
                story.go_on(moving)
            # Even records that were appended without a sync: the file has them.
            places.add(story.check(moving.disk.survivor(), _has(_rows(story.published))))
    assert places == {HERE, THERE}


@pytest.mark.slow
@at_fsync
def test_a_loss_of_power_leaves_the_log_in_one_of_the_two(durability: str, step: int) -> None:
    story = Story(durability)
    random = seeded(11)
    places = set()
    calls = story.calls()
    for call in [*calls[::step], *calls[-45 :: max(1, step // 12)]]:
        moving = story.begin()
        moving.disk.crash(call, after=True)
        with suppress(SimulatedCrash):
            story.go_on(moving)
        for image in moving.disk.crash_images(random, 3):
            places.add(story.check(image, _has(_rows(story.acknowledged))))
    assert places == {HERE, THERE}


@at_fsync
@pytest.mark.parametrize("errno", [28, 5])
def test_a_refusal_and_then_a_loss_of_power(durability: str, errno: int, step: int) -> None:
    story = Story(durability)
    random = seeded(12)
    for call in story.calls()[:: 2 * step]:
        moving = story.begin()
        moving.disk.fail(call, errno)
        with suppress(EmbedlogError, OSError):
            story.go_on(moving)
        moving.disk.heal()
        holds = _has(_rows(story.acknowledged))
        holds(moving)
        story.check(moving.disk.survivor(), _has(_rows(story.published)))
        for image in moving.disk.crash_images(random, 2):
            story.check(image, holds)


def test_what_is_deleted_after_a_move_stays_deleted() -> None:
    moving = Story("fsync").begin()
    moving.move()
    moving.log.offsets.increment_log_start_offset(20)
    for image in moving.disk.crash_images(seeded(13), 10):
        opened = Moving(image, durability="fsync")
        assert (opened.place, opened.log.offsets.log_start_offset) == (THERE, 20)


class Unheard(Metadata):
    """The controller learns nothing."""

    def report(self) -> None:
        """The controller is out of reach."""


def test_what_cannot_be_removed_is_known_for_the_older_one() -> None:
    probe = Moving()
    probe.move()
    [removal] = [
        number
        for number, call in enumerate(probe.disk.trace)
        if call[:2] == ("rename", f"{HERE}/events-0")
    ]
    moving = Moving(metadata=Unheard())
    moving.disk.fail(removal, 5)
    moving.move()
    assert moving.place == THERE
    assert moving.names(HERE) == ["events-0"]
    append(moving.log, b"behind", epoch=1)
    before = moving.told()
    opened = Moving(moving.disk.survivor(), metadata=moving.metadata)
    assert (opened.place, opened.told()[0]) == (THERE, before[0])
    opened.check()
