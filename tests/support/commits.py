"""For tests that hand commits to a cluster which is open."""

from __future__ import annotations

from pathlib import Path

from embedlog.storage.state_files import staged_layout


def expect_commits(path: str | Path) -> None:
    """Let the owner who opens a data directory next look for commits ten times a second.

    It does so where processes exchange files, and elsewhere once a second: that is a wait.
    """
    Path(staged_layout.exchange(str(path))).mkdir()
