"""Files are larger than their content: enough to be seldom extended, and never by too much."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from embedlog.runtime.memory_files import MemoryFiles
from embedlog.storage.segments.preallocation import preallocate, preallocate_zeros

BLOCK = 4096
MIB = 1 << 20


class FullDisk:
    """A file that cannot grow."""

    def reserve(self, size: int) -> None:
        raise OSError(ENOSPC, "no space")


@pytest.mark.parametrize("step", [100, 5_000, 1 << 16, 1_000_000, 10 * MIB])
def test_what_is_reserved_is_in_proportion(step: int) -> None:
    file = MemoryFiles().open("log", create=True)
    capacity = content = count = 0
    while content < 200 * MIB and count < 60:
        content = max(content + step, capacity + 1)  # as the append that no longer fits
        capacity = preallocate(file, content)
        assert file.size() == capacity
        spare = capacity - content
        assert spare >= 1 << 16 or capacity == BLOCK
        assert spare <= max(1 << 16, content)
        assert spare <= max(MIB, content // 4)
        assert spare <= 16 * MIB
        count += 1
    assert content >= 200 * MIB, "extended too often"


def test_a_full_disk_leaves_the_judgement_to_the_write() -> None:
    assert preallocate(FullDisk(), 1_000) == 1_000  # type: ignore[arg-type]


@pytest.mark.parametrize(("present", "needed"), [(0, 4_097), (0, 70_000), (65_536, 3 * MIB)])
def test_written_room_is_zeros_up_to_a_megabyte_ahead(present: int, needed: int) -> None:
    file = MemoryFiles().open("log", create=True)
    file.write([b"x" * present], 0)
    end = preallocate_zeros(file, present, needed)
    assert file.size() == end
    assert needed + 65_536 <= end <= needed + MIB + 65_536
    assert bytes(file.view(0, end)) == b"x" * present + bytes(end - present)


@pytest.mark.parametrize(("present", "needed"), [(0, 10), (0, BLOCK), (70, BLOCK)])
def test_a_short_file_takes_one_block_and_no_more(present: int, needed: int) -> None:
    file = MemoryFiles().open("log", create=True)
    file.write([b"x" * present], 0)
    assert preallocate_zeros(file, present, needed) == file.size() == BLOCK
    assert bytes(file.view(0, BLOCK)) == b"x" * present + bytes(BLOCK - present)
    assert preallocate(file, needed) == BLOCK
