"""Scenarios of share groups need the share coordinator's APIs."""

from __future__ import annotations

import pytest

from embedlog.broker import dispatch
from wire.api_keys import ApiKey


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ApiKey.INITIALIZE_SHARE_GROUP_STATE in dispatch.VERSIONS:
        return
    for item in items:
        if "tests/golden/" in item.nodeid and "[share_" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="no share coordinator is served"))
