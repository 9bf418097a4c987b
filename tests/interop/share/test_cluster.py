"""Kafka's Java tools and confluent-kafka at three brokers, whose leaders are on all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog
from embedlog import Cluster
from tests.interop.groups.test_tools import rows
from tests.interop.java_tools import bootstrap, run
from tests.interop.share.confluent_member import ConfluentMember
from tests.interop.share.share_group import SETTINGS, ShareGroup

pytestmark = [pytest.mark.interop, pytest.mark.slow]
COUNT = 4
"""Enough groups that their coordinators are not all on one broker."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with embedlog.open(brokers=3, config=SETTINGS) as made:
        made.listen()
        yield made


def test_groups_of_several_coordinators_are_described_and_reset(cluster: Cluster) -> None:
    to = bootstrap(cluster)
    groups = [ShareGroup(to[1], f"many-{number}", partitions=3) for number in range(COUNT)]
    for group in groups:
        for partition in range(3):
            group.produce(range(5), partition=partition)
        with ConfluentMember(group, "implicit") as member:
            read = 0
            while read < 15:
                read += len(member.poll())
                member.commit()
    found = rows(run("share-groups", *to, "--describe", "--all-groups", "--offsets"))
    assert sorted(
        (row["GROUP"], row["PARTITION"], row["LAG"]) for row in found if row["TOPIC"] != "TOPIC"
    ) == [(group.name, str(partition), "0") for group in groups for partition in range(3)]
    state = run("share-groups", *to, "--describe", "--all-groups", "--state")
    assert all(group.name in state for group in groups)
    first, *others = groups
    run("share-groups", *to, "--reset-offsets", "--group", first.name, "--to-earliest",
        "--all-topics", "--execute")  # fmt: skip
    with ConfluentMember(first, "implicit") as member:
        read = 0
        while read < 15:
            read += len(member.poll())
            member.commit()
    assert first.lag() == 0
    names = [word for group in others for word in ("--group", group.name)]
    assert "was successful" in run("share-groups", *to, "--delete", *names)
    assert run("share-groups", *to, "--list").split() == [first.name]


def test_records_are_released_when_the_leader_moves(cluster: Cluster) -> None:
    group = ShareGroup(bootstrap(cluster)[1], "moved", replicas=3)
    group.produce(range(6))
    partition = cluster.partition(group.topic, 0)
    with ConfluentMember(group) as member, ConfluentMember(group) as other:
        assert member.poll() == [(offset, 1) for offset in range(6)]
        member.ack("accept", 0, 1)
        member.ack("release", 2)
        member.commit()
        (next_leader, *_) = {1, 2, 3} - {partition.leader}
        partition.move_to(next_leader)
        member.ack("accept", 3)
        (error,) = member.consumer.commit_sync(30).values()
        assert error is not None
        # Only a stored count is kept: the deliveries of the others were never written.
        found = other.poll()
        assert sorted(found) == [(2, 2), (3, 1), (4, 1), (5, 1)]
        other.ack("accept")
        other.commit()
        assert group.lag() == 0
