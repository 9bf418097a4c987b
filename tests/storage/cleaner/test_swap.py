"""Putting a compacted segment in place, on a disk that refuses a step."""

from __future__ import annotations

from errno import EIO, ENOSPC

from embedlog.storage import paths
from tests.storage.cleaner.compaction import BACKOFF_MS, Compacted, rows


def _filled() -> Compacted:
    compacted = Compacted()
    for number in range(8):
        compacted.put((f"k{number % 2}", f"{number}" * 60))
    return compacted


class _Disk:
    """Refuses the last rename of a swap while `errno` is set."""

    def __init__(self, compacted: Compacted, errno: int) -> None:
        self.errno = errno
        disk, begin = compacted.runtime.files, compacted.runtime.files.begin

        def refuse(call: str, path: str) -> int | None:
            if self.errno and call == "rename" and path.endswith(paths.SWAP):
                raise OSError(self.errno, "simulated", path)
            return begin(call, path)

        disk.begin = refuse  # type: ignore[method-assign]


def test_a_full_disk_within_a_swap_delays_it_and_nothing_else() -> None:
    compacted = _filled()
    before = rows(compacted.log)
    disk = _Disk(compacted, ENOSPC)
    compacted.log.roll()
    compacted.wait(2 * BACKOFF_MS)
    log = compacted.log
    assert log.chain.is_swapping
    assert log.failure is None
    compacted.put(("k9", "later"))
    disk.errno = 0
    compacted.wait(4 * BACKOFF_MS)
    assert not log.chain.is_swapping
    assert rows(log)[-1][2] == b"later"
    assert len(rows(log)) < len(before)
    check_ends(compacted)


def test_a_broken_disk_within_a_swap_ends_all_writes() -> None:
    compacted = _filled()
    _Disk(compacted, EIO)
    compacted.log.roll()
    compacted.wait(2 * BACKOFF_MS)
    assert compacted.log.failure is not None


def test_the_decision_of_a_swap_is_synced_before_a_former_segment_goes() -> None:
    compacted = _filled()
    disk = compacted.runtime.files
    disk.trace.clear()
    compacted.clean()
    renames = [
        number for number, (_, path) in enumerate(disk.trace) if path.endswith(paths.CLEANED)
    ]
    after = [
        call
        for call, path in disk.trace[renames[-1] + 1 :]
        if call == "rename" or path == compacted.log.directory
    ]
    assert after[0] == "sync_directory"


def check_ends(compacted: Compacted) -> None:
    """Check that the next process finds the same records."""
    found = rows(compacted.log)
    assert rows(compacted.reopened().log) == found
