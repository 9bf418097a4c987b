"""Putting a staged file into a log: once, whole, and synced."""

from __future__ import annotations

import pytest

from embedlog.storage.log.log import Log
from embedlog.storage.staging.placing import place
from embedlog.storage.state_files.commit_file import Piece
from embedlog.testing import SimFiles
from tests.storage.logs import PARTITION, append, batch, check, new_log, values

STAGED = "staged/job/file"


def _staged(disk: SimFiles) -> None:
    for path in ("staged", "staged/job"):
        disk.make_directory(path)
    content = batch(b"a", b"b") + batch(b"c", base_offset=2)
    disk.open(STAGED, create=True).write([content], 0)


def _place(log: Log, *, is_renamed: bool) -> None:
    piece = Piece(PARTITION, "job/file", base_offset=1, count=3, is_renamed=is_renamed, topic_id="")
    with log.lock:
        place(log, piece, STAGED, leader_epoch=0)


@pytest.mark.parametrize("is_renamed", [False, True])
@pytest.mark.parametrize("placed", [0, 2, 3])
def test_what_an_interrupted_attempt_has_placed_is_not_placed_twice(
    placed: int, is_renamed: bool
) -> None:
    disk = SimFiles()
    log = new_log(disk=disk)
    _staged(disk)
    append(log, b"before")
    if placed:
        append(log, b"a", b"b")
    if placed > 2:
        append(log, b"c")
    log.durability.flush()
    _place(log, is_renamed=is_renamed)
    assert values(log) == [b"before", b"a", b"b", b"c"]
    check(log)


def test_a_file_is_synced_before_it_becomes_a_segment() -> None:
    disk = SimFiles()
    log = new_log(disk=disk)
    _staged(disk)
    append(log, b"before")
    log.durability.flush()
    disk.trace.clear()
    _place(log, is_renamed=True)
    calls = [call for call, path in disk.trace if path == STAGED and call in ("sync", "rename")]
    assert calls == ["sync", "rename"]
    at = disk.trace.index(("rename", STAGED))
    assert ("sync_directory", log.directory) in disk.trace[at:]
