"""A reader that opens a segment's file at the moment when its name is given to another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import File, Files
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.replica.truncation import truncate_fully_and_start_at, truncate_to
from embedlog.storage.segments.segment import Segment
from embedlog.testing import sim_runtime
from tests.storage.cleaner.compaction import Compacted, rows
from tests.storage.logs import PARTITION, append, check, new_log, values

SIDES = ["before it is opened", "after it is opened"]


def view_during(
    change: Callable[[], object], side: str, files: Files, segment: Segment
) -> memoryview:
    """Return the bytes of `segment`, whose file is opened; `change` happens on one `side` of it."""
    really_open = files.open
    reached = []

    def open_changing(path: str, *, create: bool = False) -> File:
        if path != segment.path or reached:
            return really_open(path, create=create)
        reached.append(path)
        if side == "before it is opened":
            change()
            return really_open(path, create=create)
        file = really_open(path, create=create)
        change()
        return file

    segment.file.release()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "open", open_changing)
        view = segment.file.view(0, segment.size)
    assert reached
    return view


@pytest.mark.parametrize("slot", range(4))
@pytest.mark.parametrize("side", SIDES)
def test_a_segment_that_compaction_replaces_meanwhile(side: str, slot: int) -> None:
    topic = Compacted()
    for number in range(20):
        topic.put(("same", f"{number}" * 30), (f"k{number}", "once"))
    log = topic.log
    log.roll()
    segment = log.segments[slot]
    content = bytes(segment.file.view(0, segment.size))
    assert view_during(topic.clean_at_once, side, log.files, segment) == content
    assert segment not in log.segments
    assert segment.file.view(0, segment.size) == content
    assert len(rows(log)) == 21


def three_segments() -> Log:
    log = new_log(segment_bytes=500)
    for number in range(6):
        append(log, b"%d" % number * 150)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    return log


@pytest.mark.parametrize("side", SIDES)
def test_a_segment_that_is_cut_meanwhile(side: str) -> None:
    log = three_segments()
    segment = log.segments[1]
    content = bytes(segment.file.view(0, segment.size))

    def cut() -> None:
        truncate_to(log, 3)
        append(log, b"of another leader" * 5, epoch=1)

    assert view_during(cut, side, log.files, segment) == content
    assert segment.file.view(0, segment.size) == content
    assert values(log)[2:] == [b"2" * 150, b"of another leader" * 5]
    check(log)


@pytest.mark.parametrize("side", SIDES)
def test_a_segment_whose_log_begins_anew_at_the_same_offset_meanwhile(side: str) -> None:
    log = three_segments()
    segment = log.segments[1]
    content = bytes(segment.file.view(0, segment.size))

    def begin_anew() -> None:
        truncate_fully_and_start_at(log, 2)
        append(log, b"of another leader" * 5, epoch=1)

    assert view_during(begin_anew, side, log.files, segment) == content
    assert segment.file.view(0, segment.size) == content
    assert values(log) == [b"of another leader" * 5]
    check(log)


@pytest.mark.parametrize("side", SIDES)
def test_a_log_that_is_deleted_and_made_again_meanwhile(side: str) -> None:
    runtime = sim_runtime()
    manager = LogManager(runtime, "data", LogConfig(durability="os"))
    former = manager.get_or_create(PARTITION)
    append(former, b"former")
    (segment,) = former.segments
    made = []

    def make_again() -> None:
        manager.delete(PARTITION)
        log = manager.get_or_create(PARTITION)
        append(log, b"others'")
        made.append(log)

    with pytest.raises(KafkaStorageError, match="the log was deleted"):
        view_during(make_again, side, former.files, segment)
    with pytest.raises(KafkaStorageError, match="the log was deleted"):
        segment.file.view(0, segment.size)
    assert values(made[0]) == [b"others'"]
    manager.close()
