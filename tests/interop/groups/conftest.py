"""One broker for the folder, and runs of groups against it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.groups.group_run import GroupRun
from tests.interop.groups.serving import group_broker

SESSION_MS = 3000
_numbers = itertools.count()
StartRun = Callable[..., GroupRun]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with group_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture
def start_run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartRun]:
    """Make runs of groups whose members all end with the test; at `broker` by default."""
    with ExitStack() as stack:

        def start(
            *, partitions: int, address: str | None = None, session_ms: int = SESSION_MS
        ) -> GroupRun:
            number = next(_numbers)
            folder = tmp_path / str(number)
            folder.mkdir()
            run = GroupRun(
                address or request.getfixturevalue("broker"), f"run-{os.getpid()}-{number}", folder,
                partitions=partitions, session_ms=session_ms,
            )  # fmt: skip
            return stack.enter_context(run)

        yield start
