"""Files are larger than their content: enough to be seldom extended, and never by too much."""

from __future__ import annotations

from collections.abc import Sequence
from errno import EIO, ENOSPC

import pytest

from embedlog.errors import KafkaStorageError
from embedlog.runtime.files import Bytes, File
from embedlog.runtime.memory_files import MemoryFiles
from embedlog.runtime.wrapped_files import WrappedFile, WrappedFiles
from embedlog.storage.log_config import LogConfig
from embedlog.storage.segments.preallocation import preallocate, preallocate_zeros
from embedlog.testing import sim_runtime
from tests.storage.logs import PARTITION, append, check, manager, values

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


class SmallDisk(WrappedFiles):
    """No file grows beyond `size_max` bytes; a write fills the file up to there, and then fails."""

    size_max = 70_000

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        return SmallFile(self, path, self._files.open(path, create=create, writable=writable))


class SmallFile(WrappedFile):
    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        assert isinstance(self._wrapped, SmallDisk)
        content = b"".join(buffers)
        left = self._wrapped.size_max - position
        if left < len(content):
            self._file.write([content[: max(left, 0)]], position)
            raise OSError(ENOSPC, "no space")
        return self._file.write([content], position)


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_nearly_full_disk_is_filled_to_its_end(durability: str) -> None:
    runtime = sim_runtime()
    runtime.files = SmallDisk(runtime.files)  # type: ignore[assignment]
    log = manager(runtime=runtime, config=LogConfig(durability=durability)).get_or_create(PARTITION)
    sent: list[bytes | None] = []

    def append_while_there_is_room(value: bytes) -> None:
        while True:
            try:
                append(log, value)
            except KafkaStorageError:
                return
            log.durability.flush()
            sent.append(value)

    append_while_there_is_room(b"x" * 1000)
    append_while_there_is_room(b"y")
    assert 70_000 - 100 < log.size <= 70_000
    assert values(log) == sent
    check(log)
    assert log.failure is None
    SmallDisk.size_max, small = 1 << 30, SmallDisk.size_max
    try:
        append(log, b"z" * 5_000)
        assert values(log) == [*sent, b"z" * 5_000]
    finally:
        SmallDisk.size_max = small
    check(log)


def test_a_failing_disk_is_no_full_disk() -> None:
    class Failing(FullDisk):
        def write(self, _buffers: object, _position: int) -> int:
            raise OSError(EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        preallocate_zeros(Failing(), 0, 1_000)  # type: ignore[arg-type]


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
