"""Transactional copies are exact while every client and the broker are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.chains.story import Commands, tell
from tests.support.sizes import size

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", range(1, size(1, full=2) + 1))
def test_records_copied_during_kills_exist_once(seed: int, tmp_path: Path) -> None:
    for folder in ("classes", "story"):
        (tmp_path / folder).mkdir()
    story = tell(seed, tmp_path / "story", Commands(tmp_path / "classes"))
    assert story.killed_brokers > 0
    assert story.killed_copiers > 3
    assert story.broken == []
