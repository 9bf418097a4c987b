"""Three brokers fail, one after the other, and every client keeps its guarantees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.chains.story import Commands
from tests.interop.cluster.story import tell, tell_of_streams
from tests.interop.cluster.streams import Programs

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
SECONDS = 8


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """One folder for classes, and one for the story."""
    for name in ("classes", "story"):
        (tmp_path / name).mkdir()
    return tmp_path / "classes", tmp_path / "story"


def test_records_copied_in_transactions_exist_once(folders: tuple[Path, Path]) -> None:
    classes, folder = folders
    story = tell(1, folder, Commands(classes), seconds=SECONDS)
    assert sum(story.faults.values()) >= 3
    assert story.broken == []


def test_acknowledged_records_are_kept_and_groups_read_all_of_them(
    folders: tuple[Path, Path],
) -> None:
    classes, folder = folders
    story = tell_of_streams(2, folder, Programs(classes), seconds=SECONDS)
    assert sum(story.faults.values()) >= 3
    assert story.broken == []
