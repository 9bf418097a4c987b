"""Copies in transactions are exact while three brokers fail, by every client at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.chains.story import Commands
from tests.interop.cluster.story import tell

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


def test_what_is_copied_while_brokers_fail_is_there_once(tmp_path: Path) -> None:
    for folder in ("classes", "story"):
        (tmp_path / folder).mkdir()
    story = tell(1, tmp_path / "story", Commands(tmp_path / "classes"), seconds=8)
    assert sum(story.faults.values()) >= 3
    assert story.broken == []
