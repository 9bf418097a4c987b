"""The simulated disk loses what a real one may lose, and nothing else."""

from __future__ import annotations

import errno

import pytest

from embedlog.runtime.files import write_whole
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, SimulatedCrash
from embedlog.testing.sim_files import SECTOR_SIZE


def _durable_file(disk: SimFiles, content: bytes) -> None:
    file = disk.open("f", create=True)
    file.write([content], 0)
    file.sync()
    disk.sync_directory("")


def test_synced_bytes_are_in_every_image() -> None:
    disk = SimFiles()
    _durable_file(disk, b"a" * 2000)
    disk.open("f").write([b"b" * 5000], 2000)
    for image in disk.crash_images(seeded(1), 40):
        content = image.read("f")
        # The sector of position 2000 may have been written again, with the same bytes below that
        # position.
        assert content[:2000] == b"a" * 2000
        assert set(content[2000:]) <= {0, ord("b")}


def test_images_hold_nothing_all_and_mixtures_of_unsynced_sectors() -> None:
    disk = SimFiles()
    _durable_file(disk, b"")
    disk.open("f").write([b"b" * (4 * SECTOR_SIZE)], 0)
    kept = [
        frozenset(
            sector
            for sector in range(len(content) // SECTOR_SIZE)
            if content[sector * SECTOR_SIZE] == ord("b")
        )
        for image in disk.crash_images(seeded(1), 100)
        for content in [image.read("f")]
    ]
    assert kept[0] == frozenset()
    assert kept[1] == {0, 1, 2, 3}
    assert {frozenset({0}), frozenset({2, 3}), frozenset({0, 1, 3})} <= set(kept)


def test_a_name_survives_from_the_sync_of_its_directory_on() -> None:
    disk = SimFiles()
    disk.make_directory("d")
    disk.sync_directory("")
    file = disk.open("d/f", create=True)
    file.write([b"x"], 0)
    file.sync()
    lost, kept = list(disk.crash_images(seeded(1), 2))
    assert lost.list("d") == []
    assert kept.list("d") == ["f"]
    disk.sync_directory("d")
    disk.remove("d/f")
    still, gone = list(disk.crash_images(seeded(1), 2))
    assert still.read("d/f") == b"x"
    assert gone.list("d") == []


def test_a_rename_is_atomic_in_every_image() -> None:
    disk = SimFiles()
    _durable_file(disk, b"old")
    write_whole(disk, "f", b"new", sync=False)
    contents = set()
    for image in disk.crash_images(seeded(1), 60):
        contents.add(image.read("f"))
    # Without a sync the name may stand for a file whose bytes never arrived.
    assert contents == {b"old", b"new", b"", bytes(3)}
    write_whole(disk, "f", b"newer", sync=True)
    assert {image.read("f") for image in disk.crash_images(seeded(1), 60)} == {b"newer"}


def test_a_killed_process_loses_no_written_bytes() -> None:
    disk = SimFiles()
    disk.open("f", create=True).write([b"unsynced"], 0)
    survivor = disk.survivor()
    assert survivor.read("f") == b"unsynced"
    assert survivor.boot_id == disk.boot_id
    assert next(disk.crash_images(seeded(1), 1)).boot_id != disk.boot_id


def test_bytes_of_a_failed_sync_are_never_written() -> None:
    disk = SimFiles()
    _durable_file(disk, b"old")
    file = disk.open("f")
    file.write([b"new"], 0)
    disk.fail(disk.calls, errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        file.sync()
    file.sync()
    assert disk.read("f") == b"new"
    assert {image.read("f") for image in disk.crash_images(seeded(1), 20)} == {b"old"}


@pytest.mark.parametrize(
    ("after", "size", "content"), [(False, None, b""), (True, None, b"abcdef"), (True, 2, b"ab")]
)
def test_death_comes_before_in_the_middle_or_after_a_write(
    after: bool, size: int | None, content: bytes
) -> None:
    disk = SimFiles()
    file = disk.open("f", create=True)
    disk.crash(1, after=after, size=size)
    with pytest.raises(SimulatedCrash):
        file.write([b"abc", b"def"], 0)
    with pytest.raises(SimulatedCrash):
        disk.read("f")
    assert disk.survivor().read("f") == content


def test_states_of_a_disk_share_no_change() -> None:
    disk = SimFiles()
    _durable_file(disk, b"shared")
    survivor, lost = disk.survivor(), next(disk.crash_images(seeded(1), 1))
    disk.open("f").write([b"S"], 0)
    lost.open("f").truncate(3)
    assert survivor.read("f") == b"shared"
    assert (disk.read("f"), lost.read("f")) == (b"Shared", b"sha")
    survivor.open("f").write([b"!"], 6)
    assert [image.read("f") for image in survivor.crash_images(seeded(1), 2)] == [
        b"shared",
        b"shared!",
    ]


def test_a_view_shows_later_writes() -> None:
    disk = SimFiles()
    _durable_file(disk, b"before")
    survivor = disk.survivor()
    file = survivor.open("f")
    view = file.view(0, 6)
    file.write([b"A"], 0)
    assert bytes(view) == b"Aefore"
    assert disk.read("f") == b"before"
