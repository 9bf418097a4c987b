"""A data directory for the tests of the sink."""

from __future__ import annotations

from pathlib import Path

import pytest

import embedlog


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A data directory with the topics `t` of three partitions and `other` of one."""
    path = str(tmp_path / "data")
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 3)
        cluster.create_topic("other", 1)
    return path
