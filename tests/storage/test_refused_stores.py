"""State in memory and on disk agree, whichever call of a store the disk refuses, once or for ever.

A refused change has not happened, or it is shown by `health` until it is stored. When there is room
again, background work catches up: then a reopened log has the state that was in memory.

    state                          order                               refused
    leader epochs                  memory, file                        marked, stored again
    published offset               memory, file                        marked, stored again
    log start offset, gaps         memory, checkpoint                  undone
    synced and cleaned offset      lowered before a truncation         stored again later
    segments, batches              file, memory                        nothing has changed
    producers                      memory; the snapshot is a hint      replayed
    topic id                       file, memory                        nothing has changed
    entries of a deleted log       directory, memory, checkpoints      stored before a new log
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from embedlog.errors import EmbedlogError
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, check, values

Change = Callable[["World"], object]


class World:
    """A log with records of three epochs, and the disk that it lies on."""

    def __init__(self, durability: str, disk: SimFiles | None = None) -> None:
        self.runtime: SimRuntime = sim_runtime(files=disk)
        self.disk: SimFiles = self.runtime.files
        config = LogConfig(durability=durability, segment_bytes=400, index_interval_bytes=100)
        self.manager = LogManager(self.runtime, DATA, config, is_replicated=True)
        if disk is None:
            self.log = log = self.manager.get_or_create(PARTITION)
            for number in range(6):
                append(log, b"%d" % number * 100, epoch=number // 2, producer=(7, 0, number))
            log.epochs.assign(3)
            log.offsets.allow_gaps_below(2)
            log.durability.flush()
            log.offsets.follow(6)
            self.manager.checkpoints.write_positions()

    def state(self) -> dict[str, Any]:
        log = self.manager.get(PARTITION)
        if log is None:
            return {}
        if log.failure is None:
            log.check_usable()  # as every append does: producers are read again if necessary
        return {
            "epochs": log.epochs.cache.entries,
            "start": log.offsets.log_start_offset,
            "end": log.log_end_offset,
            "gaps": log.offsets.gaps_below,
            "cleaned": log.offsets.cleaned_offset,
            "records": values(log),
            "topic id": log.topic_id,
            "producers": {
                each.producer_id: (each.producer_epoch, each.batches)
                for each in log.transactions.producers
            },
        }

    def stored(self) -> dict[str, Any]:
        """Return the state that the next process finds after a kill."""
        return World(self.log.config.durability, self.disk.survivor()).state()

    def catch_up(self) -> None:
        """Let the background work run for some minutes."""
        for _ in range(30):
            self.runtime.clock.advance(5_000)
            self.manager.tasks.stir()
            self.manager.tasks.run_once(self.runtime.clock.monotonic_ms())


def _delete_and_create(world: World) -> None:
    world.manager.delete(PARTITION)
    world.manager.get_or_create(PARTITION)


def _note_cleaning(world: World) -> None:
    world.log.offsets.cleaned_offset = 2
    world.manager.checkpoints.write_positions()


CHANGES: dict[str, Change] = {
    "begin a leader epoch": lambda world: world.log.epochs.assign(9),
    "append in a new epoch": lambda world: append(world.log, b"new", epoch=5),
    "append in a new segment": lambda world: append(world.log, b"x" * 250, epoch=3),
    "drop epochs at the end": lambda world: world.log.epochs.truncate_from_end(6),
    "raise the start": lambda world: world.log.offsets.increment_log_start_offset(3),
    "allow gaps": lambda world: world.log.offsets.allow_gaps_below(5),
    "note a cleaning": _note_cleaning,
    "truncate": lambda world: truncate_to(world.log, 3),
    "start over": lambda world: truncate_fully_and_start_at(world.log, 50),
    "roll": lambda world: world.log.roll(),
    "name the topic": lambda world: world.manager.opener.identify(world.log, bytes(15) + b"i"),
    "delete": lambda world: world.manager.delete(PARTITION),
    "delete and create": _delete_and_create,
}


IN_STEPS = ("note a cleaning", "truncate", "start over", "delete", "delete and create")
"""Changes of several files: a refusal may leave a part. And changes of background work."""


WAYS = [(False, "os"), (True, "fsync"), (False, "fsync"), (True, "os")]


def _cases() -> list[Any]:
    """Return each change in each way. The ways take turns in the fast tests."""
    found = []
    for number, name in enumerate(CHANGES):
        for way, (forever, durability) in enumerate(WAYS):
            marks = [] if way == number % 4 else [pytest.mark.slow]
            case = f"{name}-{'for ever' if forever else 'once'}-{durability}"
            found.append(pytest.param(name, forever, durability, marks=marks, id=case))
    return found


@pytest.mark.parametrize(("name", "forever", "durability"), _cases())
def test_memory_and_disk_agree(name: str, forever: bool, durability: str) -> None:
    change = CHANGES[name]
    counted = World(durability)
    start = counted.disk.calls
    change(counted)
    changed = counted.state()
    assert changed == counted.stored(), "nothing was refused"
    for call in range(counted.disk.calls - start):
        world = World(durability)
        world.disk.fail(world.disk.calls + call, errno.ENOSPC, forever=forever)
        with suppress(OSError, EmbedlogError):
            change(world)
        world.disk.heal()
        is_whole = world.log.failure is None and not world.manager.health()
        if is_whole and name not in IN_STEPS:
            # A refused call may have reached the disk nevertheless.
            assert world.stored() in (world.state(), changed), f"call {call}"
        world.catch_up()
        if world.manager.get(PARTITION) is world.log and world.log.failure is None:
            assert not world.manager.health(), f"call {call}"
            if name != "name the topic":  # the caller asks again
                assert world.state() == world.stored(), f"call {call}, later"
            change(world)
            assert world.state() == world.stored(), f"call {call}, repeated"
        if world.manager.get(PARTITION) is world.log:
            check(world.log)
