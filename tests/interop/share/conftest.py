"""One broker for the folder, and share groups at it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.interop.groups.serving import group_broker
from tests.interop.share.share_group import SETTINGS, ShareGroup

_numbers = itertools.count()
NewGroup = Callable[..., ShareGroup]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with group_broker(tmp_path_factory.mktemp("broker"), SETTINGS) as address:
        yield address


@pytest.fixture
def new_group(broker: str) -> NewGroup:
    """Make groups, each with a topic of its own."""

    def make(**options: int) -> ShareGroup:
        return ShareGroup(broker, f"share-{os.getpid()}-{next(_numbers)}", **options)

    return make
