"""DescribeLogDirs: one directory, and the sizes of what was asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import embedlog
from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import produce
from wire.schemas.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


def describe(
    client: Client, version: int, *topics: tuple[str, list[int]], everything: bool = False
) -> DescribeLogDirsResult:
    asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    request = DescribeLogDirsRequest(topics=None if everything else asked)
    response = client.call(request, version)
    assert response.error_code == 0
    [directory] = response.results
    assert directory.error_code == 0
    assert directory.log_dir
    return directory


@pytest.mark.parametrize("version", range(6))
def test_sizes_of_partitions(client: Client, version: int) -> None:
    topic = client.make_topic(partitions=2)
    batch = simple(b"a")
    client.call(produce(topic, 9, batch, partition=1), 9)
    [described] = describe(client, version, everything=True).topics
    assert described.name == topic[0]
    sizes = [(p.partition_index, p.partition_size) for p in described.partitions]
    assert sizes == [(0, 0), (1, len(batch))]
    assert {(p.offset_lag, p.is_future_key) for p in described.partitions} == {(0, False)}


def test_only_what_was_asked_for_and_exists(client: Client) -> None:
    topic = client.make_topic(partitions=2)
    assert describe(client, 4).topics == []
    assert describe(client, 4, ("nowhere", [0]), (topic[0], [9])).topics == []
    [described] = describe(client, 4, (topic[0], [1])).topics
    assert [partition.partition_index for partition in described.partitions] == [1]


def test_room_on_the_volume(tmp_path: Path) -> None:
    with embedlog.open(tmp_path) as cluster, cluster.admin() as admin:
        [directory] = admin.describe_log_dirs()[1].values()
    assert directory.total_size == shutil.disk_usage(tmp_path).total
    assert 0 < directory.usable_size < directory.total_size


def test_a_log_in_memory_has_no_volume(client: Client) -> None:
    directory = describe(client, 5)
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)
