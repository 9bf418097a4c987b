"""Background work without threads: calls do it, `maintain` does it now, `close` does its share."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.testing import SimFiles, SimRuntime, sim_runtime

MB = 1 << 20
SMALL = {"retention.bytes": 2 * MB, "segment.bytes": MB}


def _size(cluster: Cluster) -> int:
    """Return the size of all files of topics, including files that wait for deletion."""
    files, total = cluster.runtime.files, 0
    assert cluster.path is not None
    for name in files.list(cluster.path):
        path = f"{cluster.path}/{name}"
        found = files.stat(path)
        if found is not None and found.is_directory and not name.startswith("__"):
            for each in files.list(path):
                stat = files.stat(f"{path}/{each}")  # None: the file was removed just now
                total += stat.size if stat is not None and ".log" in each else 0
    return total


def _write(cluster: Cluster, size: int, producer: Any = None) -> None:
    with cluster.producer() as producer:
        for _ in range(size // 100_000):
            producer.send("outbox", b"x" * 100_000, partition=0).result()


@pytest.mark.slow
def test_an_hour_of_nothing_but_writing_takes_a_bounded_disk() -> None:
    runtime = sim_runtime(seed=1)
    interval_ms, delay_ms = 10_000, 5_000
    config = {"log.retention.check.interval.ms": interval_ms, "log.initial.task.delay.ms": 1000}
    with Cluster("data", config, runtime=runtime, durability="os") as cluster:
        cluster.create_topic("outbox", 1, config={**SMALL, "file.delete.delay.ms": delay_ms})
        sizes = []
        with cluster.producer() as producer:
            for _ in range(3600):
                producer.send("outbox", b"x" * 20_000, partition=0).result()
                runtime.clock.advance(1000)
                sizes.append(_size(cluster))
        # The kept bytes, the active segment, the one that crosses the limit, and the records of the
        # time in which nobody looks and useless files wait.
        bound = 2 * MB + 2 * MB + 20_000 * (interval_ms + delay_ms) // 1000
        assert sum(1 for size in sizes if size > 2 * MB) > 1000
        assert max(sizes) <= bound


def test_a_process_that_only_writes_cleans_up_in_real_time(tmp_path: Path) -> None:
    config = {"log.retention.check.interval.ms": 10, "log.initial.task.delay.ms": 0}
    with embedlog.open(tmp_path, config=config, durability="os") as cluster:
        cluster.create_topic("outbox", 1, config={**SMALL, "file.delete.delay.ms": 0})
        _write(cluster, 12 * MB)
        # All that may have taken less than one interval. Later calls find the work due.
        deadline = time.monotonic() + 20
        while _size(cluster) > 4 * MB and time.monotonic() < deadline:
            time.sleep(0.01)
            _write(cluster, 100_000)
        assert _size(cluster) <= 4 * MB


def test_maintain_frees_what_is_too_much_at_once(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("outbox", 1, config=SMALL)
        _write(cluster, 12 * MB)
        before = _size(cluster)
        assert before >= 12 * MB - 200_000
        freed = cluster.maintain()
        assert _size(cluster) <= 4 * MB
        assert freed >= 8 * MB
        assert cluster.maintain() == 0


def test_maintain_compacts_what_kafkas_cleaner_would() -> None:
    runtime = sim_runtime(seed=1)
    with Cluster("data", runtime=runtime, durability="os") as cluster:
        cluster.create_topic(
            "keys", 1, config={"cleanup.policy": "compact", "segment.bytes": 1 << 20}
        )
        with cluster.producer() as producer:
            for number in range(60):
                producer.send("keys", b"x" * 100_000, key=b"%d" % (number % 3)).result()
        log = cluster.broker().core.log_manager.get(TopicPartition("keys", 0))
        assert log is not None
        before = log.size
        assert cluster.maintain() == before - log.size
        assert log.size < 2 * MB
        assert log.offsets.cleaned_offset == log.segments[-1].base_offset
        assert cluster.maintain() == 0


def test_maintain_ends_offsets_that_are_too_old() -> None:
    runtime = sim_runtime(seed=1)
    config = {"offsets.retention.minutes": 1}
    with Cluster("data", config, runtime=runtime, durability="fsync") as cluster:
        cluster.create_topic("t", 1)
        with cluster.consumer(group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([("t", 0)])
            consumer.commit({("t", 0): 0})
        with cluster.admin() as admin:
            assert list(admin.list_groups()) == ["g"]
            runtime.clock.advance(61_000)
            cluster.maintain()
            assert list(admin.list_groups()) == []


def test_maintain_goes_on_beside_a_listener_and_writers(tmp_path: Path) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster:
        cluster.create_topic("outbox", 1, config=SMALL)
        listener = cluster.listen()
        threads = [
            threading.Thread(target=_write, args=(target, 4 * MB)) for target in (cluster, cluster)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            cluster.maintain()
        cluster.maintain()
        assert _size(cluster) <= 4 * MB
        listener.close()


def test_a_closed_cluster_is_not_maintained() -> None:
    cluster = embedlog.open()
    cluster.close()
    with pytest.raises(embedlog.errors.ClosedError):
        cluster.maintain()


def test_a_short_life_does_its_share_at_the_close() -> None:
    files = SimFiles()
    sizes = []
    for life in range(6):
        runtime = sim_runtime(seed=life, files=files)
        with Cluster("data", runtime=runtime, durability="os") as cluster:
            if "outbox" not in cluster.topics:
                cluster.create_topic("outbox", 1, config=SMALL)
            _write(cluster, 2 * MB)
        sizes.append(_size(cluster))
    assert max(sizes) <= 4 * MB
    assert not [name for name in files.list("data/outbox-0") if name.endswith(".deleted")]


@pytest.mark.slow
def test_records_that_are_too_old_go_at_the_close_once_their_files_are_old_too(
    tmp_path: Path,
) -> None:
    old = time.time() - 10 * 86_400
    with embedlog.open(tmp_path) as cluster, cluster.producer() as producer:
        producer.send("events", b"x", partition=0, timestamp_ms=int(old * 1000)).result()

    def count() -> int:
        with embedlog.open(tmp_path) as cluster, cluster.consumer() as consumer:
            consumer.assign([("events", 0)])
            consumer.seek_to_beginning()
            return len(consumer.poll(1000))

    # Kafka would look after 30 s, so a program that copies old records reads them in the next
    # process.
    assert count() == 1
    (log,) = (tmp_path / "events-0").glob("*.log")
    os.utime(log, (old, old))
    assert count() == 1
    assert count() == 0


def test_files_that_wait_for_their_deletion_go_at_the_close(tmp_path: Path) -> None:
    runtime = sim_runtime(seed=1)
    config = {"log.initial.task.delay.ms": 1000, "log.retention.check.interval.ms": 1000}
    with Cluster("data", config, runtime=runtime, durability="os") as cluster:
        cluster.create_topic("outbox", 1, config=SMALL)
        _write(cluster, 6 * MB)
        runtime.clock.advance(2000)
        _write(cluster, 100_000)
        names = runtime.files.list("data/outbox-0")
        assert [name for name in names if name.endswith(".deleted")]
    names = runtime.files.list("data/outbox-0")
    assert not [name for name in names if name.endswith(".deleted")]


def test_a_background_thread_needs_no_calls(tmp_path: Path) -> None:
    config = {"log.retention.check.interval.ms": 10, "log.initial.task.delay.ms": 0}
    with embedlog.open(tmp_path, config=config, durability="os", background=True) as cluster:
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("embedlog-background") == 1
        cluster.create_topic("outbox", 1, config={**SMALL, "file.delete.delay.ms": 0})
        _write(cluster, 12 * MB)
        passed = threading.Event()
        for _ in range(500):
            if _size(cluster) <= 4 * MB:
                break
            passed.wait(0.01)
        assert _size(cluster) <= 4 * MB
    assert "embedlog-background" not in [thread.name for thread in threading.enumerate()]


def _compacted(cluster: Cluster, runtime: SimRuntime, step_ms: int = 1) -> int:
    """Write a dirty segment; return the milliseconds until calls alone have compacted it."""
    log = cluster.broker().core.log_manager.get(TopicPartition("keys", 0))
    assert log is not None
    with cluster.producer() as producer:
        for number in range(20):
            producer.send("keys", b"x" * 100_000, key=b"%d" % (number % 3)).result()
        end, start_ms = log.segments[-1].base_offset, runtime.clock.monotonic_ms()
        while log.offsets.cleaned_offset < end:
            runtime.clock.advance(step_ms)
            with cluster.admin() as admin:
                admin.list_topics()
            assert runtime.clock.monotonic_ms() - start_ms < 60_000
    return runtime.clock.monotonic_ms() - start_ms


CLEANED = {"cleanup.policy": "compact", "segment.bytes": MB, "min.cleanable.dirty.ratio": 0.01}


def test_compaction_comes_after_the_backoff_that_is_set() -> None:
    runtime = sim_runtime(seed=1)
    with Cluster(
        "data", {"log.cleaner.backoff.ms": 200}, runtime=runtime, durability="os"
    ) as cluster:
        cluster.create_topic("keys", 1, config=CLEANED)
        assert [_compacted(cluster, runtime) <= 300 for _ in range(3)] == [True] * 3


def test_a_backoff_that_is_changed_holds_for_the_compaction_that_waits() -> None:
    runtime = sim_runtime(seed=1)
    with Cluster("data", runtime=runtime, durability="os") as cluster:
        cluster.create_topic("keys", 1, config=CLEANED)
        assert 15_000 <= _compacted(cluster, runtime, 50) <= 16_500
        with cluster.producer() as producer:
            producer.send("keys", b"x", key=b"1").result()
        with cluster.admin() as admin:
            resource = embedlog.ConfigResource(embedlog.ResourceType.BROKER, "")
            changes = {"log.cleaner.backoff.ms": (embedlog.AlterOperation.SET, "200")}
            admin.incremental_alter_configs({resource: changes}).check()
        assert [_compacted(cluster, runtime) <= 300 for _ in range(2)] == [True] * 2
