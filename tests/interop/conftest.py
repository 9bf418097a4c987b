"""A broker in this process for foreign clients; one for the whole folder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

import embedlog

_numbers = itertools.count()


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    # The clients' records are older than a week: retention may not remove them during a test.
    with embedlog.open(log_retention_ms=-1) as cluster:
        yield cluster.listen("127.0.0.1", 0).address


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Return unused topic names."""
    return lambda word: f"{word}-{next(_numbers)}"
