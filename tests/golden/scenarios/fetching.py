"""Fetch without sessions: every version, limits, offsets, epochs, isolation."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import fetch, make_topic, produce
from tests.golden.run import Run, scenario
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic

VERSIONS = range(4, 19)
V = 12
MISSING_ID = bytes(range(1, 17))


@scenario
def fetch_versions(run: Run) -> None:
    topic = make_topic(run, partitions=2)
    run.setup(produce(topic, 9, simple(b"a", b"b", b"c")), 9)
    run.setup(produce(topic, 9, simple(b"d", key=b"k")), 9)
    unknown = (run.topic("unknown"), MISSING_ID)
    for version in VERSIONS:
        run.send(fetch(topic, version), version, "from the start")
        run.send(fetch(topic, version, 1), version, "inside the first batch")
        run.send(fetch(topic, version, 4), version, "at the end")
        run.send(fetch(topic, version, 5), version, "beyond the end")
        run.send(fetch(topic, version, -1), version, "offset -1")
        run.send(fetch(topic, version, partition=1), version, "empty partition")
        run.send(fetch(topic, version, partition=9), version, "no partition 9")
        run.send(fetch(unknown, version), version, "unknown topic")
        committed = fetch(topic, version, isolation_level=1)
        run.send(committed, version, "read committed")


@scenario
def fetch_limits(run: Run) -> None:
    topic = make_topic(run, partitions=3)
    for partition in range(3):
        for _ in range(3):
            run.setup(produce(topic, 9, simple(b"x" * 1000), partition=partition), 9)
    for version in (4, 11, 12, 13, 18):
        for limit in (0, 1, 1071, 1072, 1073, 2144, 5000):
            run.send(
                fetch(topic, version, partition_max_bytes=limit), version, f"partition max {limit}"
            )
            request = fetch(topic, version, more=[(topic, 1, 0), (topic, 2, 0)], max_bytes=limit)
            run.send(request, version, f"max {limit} over three partitions")
    run.send(fetch(topic, V, partition_max_bytes=-1), V, "partition max -1")
    run.send(fetch(topic, V, max_bytes=-1), V, "max -1")
    again = fetch(topic, V, more=[(topic, 0, 1)])
    run.send(again, V, "the same partition twice")


@scenario
def fetch_waits(run: Run) -> None:
    topic = make_topic(run)
    run.setup(produce(topic, 9, simple(b"a")), 9)
    for version in (4, 7, 12, 13, 18):
        quick = fetch(topic, version, 1, max_wait_ms=50, min_bytes=1)
        run.send(quick, version, "nothing comes in 50 ms")
        large = fetch(topic, version, max_wait_ms=50, min_bytes=100_000)
        run.send(large, version, "less than min_bytes after 50 ms")
        beyond = fetch(topic, version, 9, max_wait_ms=20_000, min_bytes=1)
        run.send(beyond, version, "out of range answers at once")
        unknown = fetch((run.topic("none"), MISSING_ID), version, max_wait_ms=50, min_bytes=1)
        run.send(unknown, version, "unknown topic")
    run.send(fetch(topic, V, 1, max_wait_ms=-1, min_bytes=1), V, "max_wait -1")
    run.send(fetch(topic, V, 1, max_wait_ms=0, min_bytes=-1), V, "min_bytes -1")
    run.send(FetchRequest(max_wait_ms=100, min_bytes=1, topics=[]), V, "no partitions")


@scenario
def fetch_epochs(run: Run) -> None:
    topic = make_topic(run)
    run.setup(produce(topic, 9, simple(b"a", b"b")), 9)
    for version in (9, 11, 12, 13, 18):
        for epoch in (-1, 0, 1, -2):
            request = fetch(topic, version, partition_fields={"current_leader_epoch": epoch})
            run.send(request, version, f"current leader epoch {epoch}")
    for version in (12, 13, 18):
        for epoch in (0, 1, 9):
            request = fetch(topic, version, 2, partition_fields={"last_fetched_epoch": epoch})
            run.send(request, version, f"last fetched epoch {epoch}")


@scenario
def fetch_arguments(run: Run) -> None:
    topic = make_topic(run)
    run.setup(produce(topic, 9, simple(b"a")), 9)
    for level in (2, -1):
        run.send(fetch(topic, V, isolation_level=level), V, f"isolation level {level}")
    for replica in (-2, -3, 5, 1):
        run.send(fetch(topic, V, replica_id=replica), V, f"replica id {replica}")
    run.send(fetch(topic, V, rack_id="rack"), V, "rack")
    run.send(fetch(topic, V, cluster_id="another"), V, "another cluster id")
    run.send(fetch(("", bytes(16)), 13), 13, "zero topic id")
    run.send(fetch(("a b", bytes(16)), V), V, "illegal topic name")
    start = FetchPartition(partition=0, fetch_offset=0, log_start_offset=7)
    start.partition_max_bytes = 1000
    topics = [FetchTopic(topic=topic[0], partitions=[start])]
    run.send(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), V, "log start offset 7")


@scenario
def fetch_after_deletion(run: Run) -> None:
    topic = make_topic(run)
    for _ in range(3):
        run.setup(produce(topic, 9, simple(b"a", b"b")), 9)
    trim = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic[0], partitions=[DeleteRecordsPartition(partition_index=0, offset=3)]
            )
        ],
        timeout_ms=5000,
    )
    run.setup(trim, 2)
    for version in (4, 5, 12, 13, 18):
        run.send(fetch(topic, version, 0), version, "below the log start")
        run.send(fetch(topic, version, 3), version, "at the log start, inside a batch")
        run.send(fetch(topic, version, 4), version, "above it")
