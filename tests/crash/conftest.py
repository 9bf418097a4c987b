"""What all crash tests need."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """They silence the log of their process: the tests that come after them may look at it."""
    logger = logging.getLogger("embedlog")
    level = logger.level
    yield
    logger.setLevel(level)
