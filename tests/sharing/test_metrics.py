"""The numbers of a share partition."""

from __future__ import annotations

import embedlog
from embedlog.sharing.acquisition import RECORD_LIMIT
from embedlog.sharing.delivery import Cause
from tests.sharing.world import LOCK_MS, World


def test_the_numbers_of_the_window(world: World) -> None:
    world.fill(5, 5)
    world.acquire(record_count_max=1)
    world.acquire(record_count_max=3, mode=RECORD_LIMIT)
    assert world.say("one", 1, 1, Cause.ACCEPT) is None
    assert world.say("one", 2, 2, Cause.RELEASE) is None
    assert world.share.metrics() == {
        "InFlightMessageCount": 10,
        "InFlightBatchCount": 2,
        "AcquiredCount": 3 + 3,
        "LockTimeoutCount": 0,
        "DeliveredCount.0": 2,
        "DeliveredCount.1": 7,
    }


def test_records_whose_lock_expired_are_counted_once_for_each_expiry(world: World) -> None:
    world.fill(3)
    for count in (1, 2):
        world.acquire()
        world.run_for(LOCK_MS)
        found = world.share.metrics()
        assert found["LockTimeoutCount"] == 3 * count
        assert found["AcquiredCount"] == 0
        assert found[f"DeliveredCount.{count}"] == 3


def test_a_released_record_has_no_lock_that_expires(world: World) -> None:
    world.fill(3)
    world.acquire()
    world.say("one", 0, 2, Cause.RELEASE)
    world.run_for(LOCK_MS)
    assert world.share.metrics()["LockTimeoutCount"] == 0


def test_a_broker_tells_the_numbers_of_its_share_partitions() -> None:
    with embedlog.open() as cluster:
        cluster.create_topic("jobs")
        earliest = {"share.auto.offset.reset": "earliest"}
        cluster.admin().alter_configs({embedlog.ConfigResource("group", "workers"): earliest})
        cluster.producer().send_batch("jobs", [b"a", b"b"]).result()
        with cluster.share_consumer(group_id="workers") as consumer:
            consumer.subscribe(["jobs"])
            assert len(consumer.poll(10_000)) == 2
            found = cluster.broker().share_metrics()
            assert found.keys() == {("workers", "jobs", 0)}
            assert found["workers", "jobs", 0]["AcquiredCount"] == 2
            consumer.commit_sync()
            found = cluster.broker().share_metrics()
            assert found["workers", "jobs", 0]["InFlightMessageCount"] == 0
