"""A world with one share partition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sharing.world import World


@pytest.fixture
def world() -> Iterator[World]:
    """A broker with one topic and one share partition, which is loaded."""
    made = World()
    yield made
    made.close()
