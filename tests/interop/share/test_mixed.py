"""Members of three clients share one topic, die and come again, and no promise is broken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import embedlog
from tests.interop.cluster.story import FAST, break_one
from tests.interop.share.share_group import SETTINGS, ShareGroup
from tests.interop.share.story import tell
from tests.support.sizes import size

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
NewGroup = Callable[..., ShareGroup]
CLIENTS = ["confluent", "confluent", "franz-go", "franz-go", "java"]
PARTITIONS = 3
COUNT = size(480, full=3000)
SECONDS = size(6, full=30)


@pytest.mark.parametrize("seed", range(1, 1 + size(1, full=20)))
def test_members_die_and_come_again(seed: int, new_group: NewGroup, tmp_path: Path) -> None:
    group = new_group(partitions=PARTITIONS)
    told = tell(seed, group, tmp_path, clients=CLIENTS, partitions=PARTITIONS, count=COUNT,
                seconds=SECONDS)  # fmt: skip
    assert told.broken == []
    assert told.kills >= 3
    assert told.redelivered > 0


@pytest.mark.parametrize("seed", range(1, 1 + size(1, full=20)))
def test_leaders_change_and_brokers_die(seed: int, tmp_path: Path) -> None:
    config = {**SETTINGS, **FAST, "default.replication.factor": "3"}
    with embedlog.open(tmp_path / "data", brokers=3, config=config, durability="os") as cluster:
        address = cluster.listen().address
        group = ShareGroup(address, f"moved-{seed}", partitions=PARTITIONS, replicas=3)
        told = tell(seed, group, tmp_path, clients=CLIENTS, partitions=PARTITIONS, count=COUNT,
                    seconds=SECONDS, fault=partial(break_one, cluster=cluster))  # fmt: skip
        assert told.broken == []
        assert told.redelivered > 0
