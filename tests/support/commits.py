"""Helpers for tests that hand commits to an open cluster."""

from __future__ import annotations

from pathlib import Path

from embedlog.storage.state_files import staged_layout


def expect_commits(path: str | Path) -> None:
    """Let the next owner of a data directory look for commits ten times a second.

    Owners look at this rate only if other processes use the directory; the usual rate of once a
    second would slow the tests.
    """
    Path(staged_layout.exchange(str(path))).mkdir()
