"""A disk that refuses for a moment costs nothing afterwards; a clean stop promises only the
truth.
"""

from __future__ import annotations

from contextlib import suppress
from errno import EIO, EMFILE

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.errors import KafkaError, TimedOut
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, sim_runtime


def _open(disk: SimFiles, level: str = "fsync") -> Cluster:
    return Cluster("data", durability=level, runtime=sim_runtime(files=disk))


def _values(disk: SimFiles, topic: str) -> list[bytes | None]:
    cluster = _open(disk)
    log = cluster.broker().core.replica_manager.partition(topic, 0).log
    consumer = cluster.consumer(enable_auto_commit=False, auto_offset_reset="earliest")
    consumer.assign([(topic, 0)])
    found: list[bytes | None] = []
    while consumer.position((topic, 0)) < log.log_end_offset:
        found += [record.value for record in consumer.poll(100)]
    return found


class _Refusing(SimFiles):
    """Has no descriptor for the next sync of one directory."""

    refused = "nothing"
    forever = False
    count = 0

    def sync_directory(self, path: str) -> None:
        if path == self.refused:
            self.count += 1
            if not self.forever:
                self.refused = "nothing"
            raise OSError(EMFILE, "Too many open files", path)
        super().sync_directory(path)


def test_a_clean_stop_does_not_vouch_for_topics_that_are_not_synced() -> None:
    disk = SimFiles()
    for _ in range(2):  # the second process uses no record of the topic
        cluster = _open(disk)
        if "t" not in cluster.topics:
            cluster.create_topic("t", 1, config={"embedlog.durability": "os"})
            cluster.producer().send("t", b"x").result()
        cluster.close()
    image = next(iter(disk.crash_images(seeded(1), 1)))
    epoch = _open(disk).broker().core.controller.image.partition("t", 0)
    lost = _open(image)
    assert lost.broker().core.replica_manager.partition("t", 0).log.log_end_offset == 0
    after = lost.broker().core.controller.image.partition("t", 0)
    assert epoch is not None
    assert after is not None
    assert after.leader_epoch > epoch.leader_epoch


def test_a_directory_whose_open_failed_can_be_opened_again() -> None:
    disk = SimFiles()
    _open(disk).close()
    first = disk.survivor()
    _open(first)
    calls = [n for n in range(first.calls) if first.trace[n][0] in ("list", "read")]
    assert calls
    for call in calls:
        again = disk.survivor()
        again.fail(call, EMFILE)
        try:
            cluster = _open(again)
        except (OSError, KafkaError):
            cluster = _open(again)
        assert cluster.topics == []


def test_a_topic_that_is_made_at_the_second_attempt_outlives_a_loss_of_power() -> None:
    disk = _Refusing()
    cluster = _open(disk)
    disk.refused = "data"
    with suppress(KafkaError):
        cluster.create_topic("t", 1)
    assert disk.refused == "nothing"
    cluster.producer().send("t", b"x").result()
    assert _values(next(iter(disk.crash_images(seeded(1), 1))), "t") == [b"x"]


@pytest.mark.parametrize("enable_idempotence", [True, False])
def test_a_sync_without_a_descriptor_is_made_later(enable_idempotence: bool) -> None:
    disk = _Refusing()
    cluster = _open(disk)
    producer = cluster.producer(enable_idempotence=enable_idempotence)
    cluster.create_topic("t", 1)
    disk.refused = "data/t-0"
    assert producer.send("t", b"x").result().offset == 0
    assert disk.refused == "nothing"
    assert cluster.runtime.clock.monotonic_ms() < 1000
    assert _values(next(iter(disk.crash_images(seeded(1), 1))), "t") == [b"x"]


def test_a_sync_that_finds_no_descriptor_for_long_does_not_spin() -> None:
    disk = _Refusing()
    cluster = _open(disk)
    producer = cluster.producer(request_timeout_ms=2000, delivery_timeout_ms=2000)
    cluster.create_topic("t", 1)
    disk.refused, disk.forever = "data/t-0", True
    with pytest.raises(KafkaError):
        producer.send("t", b"x").result()
    assert 1 < disk.count < 100


class _Unsyncable(SimFiles):
    """Cannot sync the logs of offsets while `is_broken`."""

    is_broken = False

    def begin(self, call: str, path: str) -> int | None:
        if self.is_broken and call == "sync" and "__consumer_offsets" in path:
            raise OSError(EIO, "Input/output error", path)
        return super().begin(call, path)


def test_a_consumer_whose_groups_log_cannot_be_synced_is_told_why_it_waited() -> None:
    """Kafka's clients look for another coordinator until the timeout, and so do ours."""
    disk = _Unsyncable()
    cluster = _open(disk)
    cluster.create_topic("t", 1)
    consumer = cluster.consumer(group_id="g", enable_auto_commit=False)
    consumer.assign([("t", 0)])
    consumer.commit({("t", 0): 0})
    disk.is_broken = True
    for call in (
        lambda: consumer.commit({("t", 0): 1}, timeout_ms=1000),
        lambda: consumer.committed([("t", 0)], timeout_ms=1000),
    ):
        with pytest.raises(TimedOut, match="the last error was: .*Coordinator.*: "):
            call()
    assert any("__consumer_offsets" in str(news) for news in cluster.health()), cluster.health()
