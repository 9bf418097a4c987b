"""A broker keeps nothing of a topic that was deleted."""

from __future__ import annotations

import embedlog
from embedlog.common import TopicPartition


def test_nothing_is_kept_of_a_deleted_topic() -> None:
    with embedlog.open(brokers=2) as cluster:
        cluster.create_topic("stays", 1, replication_factor=2)
        settings = {
            "segment.bytes": "2000000",
            "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "*",
        }
        cluster.create_topic("goes", 1, replication_factor=2, config=settings)
        broker = cluster.broker(1).core
        throttles = broker.replica_manager.replication.throttles
        (manager,) = broker.log_manager.managers
        assert throttles.leader.covers("goes", 0)
        cluster.admin().delete_topics(["goes"]).check()
        new = manager.get_or_create(TopicPartition("goes", 0))
        assert new.config.segment_bytes != 2_000_000
        assert not throttles.leader.covers("goes", 0)
        assert not throttles.follower.covers("goes", 0)
