"""The transactions that are open where the last segment of another process's log begins."""

from __future__ import annotations

import pytest

from embedlog.storage import paths
from embedlog.storage.foreign.tail import transactions_at
from tests.storage.logs import append, append_marker, new_log


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_they_are_found_from_whichever_snapshot_is_there(kept: int) -> None:
    log = new_log(segment_bytes=300)
    for producer_id in range(7, 11):
        append(log, b"x" * 150, producer=(producer_id, 0, 0), transactional=True)
        append_marker(log, producer_id, committed=producer_id != 8) if producer_id == 8 else None
        log.roll()
    bases = [segment.base_offset for segment in log.segments]
    for base in bases[kept + 1 :]:
        log.files.remove(paths.segment_file(log.directory, base, paths.SNAPSHOT))
    assert transactions_at(log.files, log.directory, bases) == {7: 0, 9: 3, 10: 4}
