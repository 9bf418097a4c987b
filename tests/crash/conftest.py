"""Fixtures of all crash tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Restore the log levels: the programs silence the log, which later tests may examine."""
    logger = logging.getLogger("embedlog")
    level = logger.level
    yield
    logger.setLevel(level)
