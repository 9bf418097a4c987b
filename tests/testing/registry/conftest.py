"""Fixtures for the tests of the schema registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.testing import Registry
from tests.testing.registry.calls import Calls


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A fresh registry."""
    with Registry() as made:
        yield made


@pytest.fixture
def call(registry: Registry) -> Iterator[Calls]:
    """Calls to `registry`."""
    made = Calls(registry)
    yield made
    made.close()
