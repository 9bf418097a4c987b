"""One process opens a shared directory, the others connect to it, and one of them is next."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import embedlog
from embedlog import errors
from embedlog.cluster.processes.ownership import Ownership
from embedlog.cluster.processes.shared_directory import SharedDirectory, ports
from embedlog.runtime import real_runtime

WAIT_S = 30.0


def until(is_true: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def shared(path: Path, **settings: object) -> embedlog.SharedCluster:
    return embedlog.connect_or_open(path, durability="os", **settings)  # type: ignore[arg-type]


@contextmanager
def taken(port: int) -> Iterator[None]:
    """Listen on a port, as another program does."""
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        yield


def identity(path: Path) -> tuple[str, int]:
    found = SharedDirectory(real_runtime().files, str(path)).identity()
    assert found is not None
    return found


# Owners


def test_the_first_opens_the_directory_and_the_second_connects_to_it(path: Path) -> None:
    with shared(path) as first, shared(path) as second:
        assert (first.is_owner, second.is_owner) == (True, False)
        assert first.address == second.address
        assert first.cluster_id == second.cluster_id
        made = second.create_topic("events", 2, config={"retention.ms": 1000, "segment.ms": None})
        assert made.partition_count == 2
        assert made.configs["retention.ms"] == "1000"
        first.create_topic("jobs")
        assert first.topics == second.topics == ["events", "jobs"]
        with pytest.raises(errors.TopicAlreadyExists):
            second.create_topic("jobs")
        assert "owner" in repr(first)
        assert "connected" in repr(second)


def test_another_becomes_the_owner_at_the_same_address_when_the_owner_closes(path: Path) -> None:
    first = shared(path)
    with shared(path) as second, second.producer() as producer:
        producer.send("events", b"a", partition=0).result()
        address = first.address
        first.close()
        producer.send("events", b"b", partition=0).result(WAIT_S)
        assert second.is_owner
        assert second.address == address
        with second.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("events", 0)])
            assert [record.value for record in consumer.poll(1000)] == [b"a", b"b"]


@pytest.mark.slow
def test_every_kind_of_client_goes_on_with_the_next_owner(path: Path) -> None:
    first = shared(path)
    with (
        shared(path) as second,
        second.admin() as admin,
        second.producer() as producer,
        second.consumer(group_id="g", auto_offset_reset="earliest") as consumer,
        second.share_consumer(group_id="s") as sharer,
    ):
        second.create_topic("events", 1)
        earliest = {"share.auto.offset.reset": (embedlog.AlterOperation.SET, "earliest")}
        admin.incremental_alter_configs({embedlog.ConfigResource("group", "s"): earliest}).check()
        consumer.subscribe(["events"])
        sharer.subscribe(["events"])
        until(lambda: consumer.poll(10) or consumer.assignment())
        until(lambda: sharer.poll(10) or sharer.metrics()["assigned-partitions"])
        first.close()
        assert "events" in admin.list_topics()
        producer.send("events", b"a").result(WAIT_S)
        until(lambda: [record.value for record in consumer.poll(100)] == [b"a"])
        consumer.commit()
        until(lambda: [record.value for record in sharer.poll(100)] == [b"a"])
        assert set(sharer.commit_sync().values()) == {None}


@pytest.mark.slow
def test_a_queue_goes_on_with_the_next_owner(path: Path) -> None:
    first = shared(path)
    with shared(path) as second, first.queue("jobs") as put, second.queue("jobs") as queue:
        put.put("a")
        with _taken(queue) as job:
            assert job.value == "a"
        assert queue.flush()
        put.put("b")
        put.close()
        first.close()
        queue.put("c")
        for value in ("b", "c"):
            job = _taken(queue)
            assert job.value == value
            job.ack(wait=True)
        assert second.is_owner
        assert queue.get(timeout=0.1) is None


def _taken(queue: embedlog.Queue) -> embedlog.Job:
    job = queue.get(timeout=WAIT_S)
    assert job is not None
    return job


def test_three_become_owners_one_after_the_other(path: Path) -> None:
    clusters = [shared(path) for _ in range(3)]
    with clusters[2].producer() as producer:
        for number, cluster in enumerate(clusters):
            producer.send("events", b"%d" % number, partition=0).result(WAIT_S)
            until(lambda: sum(each.is_owner for each in clusters if not each.is_closed) == 1)
            if number < 2:
                owner = next(each for each in clusters[:2] if not each.is_closed and each.is_owner)
                owner.close()
            assert cluster.path == str(path)
    assert clusters[2].is_owner
    clusters[2].close()


def test_the_clients_of_the_owner_need_no_connection(path: Path) -> None:
    with shared(path) as owner, shared(path) as guest:
        settings = {"client.id": "a"}
        transport = owner.reach(settings)
        assert transport.in_process
        transport.close()
        with pytest.raises(KeyError):  # the guest asks for the settings of connections
            guest.reach(settings)


# Addresses


def test_a_port_that_another_program_has_is_left_to_it(path: Path) -> None:
    with shared(path) as owner:
        preferred = int(str(owner.address).rpartition(":")[2])
    with taken(preferred), shared(path) as first, shared(path) as second:
        assert first.address != f"127.0.0.1:{preferred}"
        assert second.topics == []


def test_clients_find_the_next_owner_at_another_port(path: Path) -> None:
    first = shared(path, listeners="PLAINTEXT://127.0.0.1:0")
    with (
        shared(path) as second,
        shared(path) as third,
        third.producer() as producer,
        third.consumer(group_id="g", auto_offset_reset="earliest") as consumer,
    ):
        producer.send("events", b"a", partition=0).result()
        consumer.subscribe(["events"])
        until(lambda: consumer.poll(100))
        address = first.address
        first.close()
        producer.send("events", b"b", partition=0).result(WAIT_S)
        until(lambda: [record.value for record in consumer.poll(100)] == [b"b"])
        assert third.address != address
        assert second.is_owner != third.is_owner


@pytest.mark.slow
def test_a_broker_of_another_cluster_at_the_address_gets_no_request(path: Path) -> None:
    with (
        embedlog.open(path, durability="os") as owner,
        embedlog.open() as other,
    ):
        stranger = other.listen()
        owner.log_managers()[0].note_addresses([stranger.address])
        with pytest.raises(errors.DirectoryLocked, match="this process"):
            shared(path, timeout_ms=10)
        with owner.producer() as producer:
            producer.send("events", b"a").result()
        listener = owner.listen()
        owner.log_managers()[0].note_addresses([stranger.address, listener.address])
        with shared(path) as cluster, cluster.producer() as producer:
            assert cluster.topics == ["events"]
            producer.send("events", b"b").result(WAIT_S)
        assert other.topics == []


def test_an_address_of_a_dead_owner_is_not_taken_for_the_owners(path: Path) -> None:
    with embedlog.open(path, durability="os") as owner:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{closed.getsockname()[1]}"
        owner.log_managers()[0].note_addresses([address, "torn", "127.0.0.1:99999"])
        with pytest.raises(errors.DirectoryLocked):
            shared(path, timeout_ms=10)


def test_the_owner_may_be_a_plain_cluster_that_listens(path: Path) -> None:
    owner = embedlog.open(path, durability="os")
    with pytest.raises(errors.DirectoryLocked, match="is held by pid"):
        shared(path, timeout_ms=50)
    owner.listen()
    with shared(path) as cluster:
        cluster.create_topic("events")
        assert owner.topics == ["events"]
        owner.close()
        assert cluster.topics == ["events"]
        until(lambda: cluster.is_owner)


def test_the_port_depends_on_the_cluster_and_on_the_path() -> None:
    found = list(ports("cluster", "/a"))
    assert found == list(ports("cluster", "/a"))
    assert found[-1] == 0
    assert all(20_000 <= port < 32_000 for port in found[:-1])
    assert len(set(found)) == len(found)
    assert found[0] != next(ports("cluster", "/b"))
    assert found[0] != next(ports("other", "/a"))


# Refusals


def test_memory_and_several_brokers_are_refused(path: Path) -> None:
    for memory in (None, ":memory:"):
        with pytest.raises(errors.ConfigError, match="share a directory"):
            embedlog.connect_or_open(memory)  # type: ignore[arg-type]
    embedlog.open(path, brokers=2, durability="os").close()
    with pytest.raises(errors.ConfigError, match="2 brokers|several brokers"):
        shared(path)


def test_wrong_settings_and_directories_are_refused_as_by_open(path: Path) -> None:
    with pytest.raises(errors.ConfigError):
        shared(path, num_partitions="many")
    with pytest.raises(ValueError, match="timeout_ms"):
        shared(path, timeout_ms=-1)
    path.mkdir(exist_ok=True)
    (path / "letter.txt").write_text("not a log")
    with pytest.raises(errors.ConfigError, match="no data directory"):
        shared(path)


def test_an_unreadable_metadata_log_is_reported_and_releases_the_directory(path: Path) -> None:
    with shared(path) as cluster:
        cluster.create_topic("events")
    log = next((path / "__cluster_metadata-0").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[30] ^= 1
    log.write_bytes(content)
    with pytest.raises(errors.CorruptRecord):
        shared(path)
    content[30] ^= 1
    log.write_bytes(content)
    with shared(path) as cluster:
        assert cluster.topics == ["events"]


# Ends


def test_a_closed_cluster_refuses_calls(path: Path) -> None:
    with shared(path) as owner:
        cluster = shared(path)
        cluster.close()
        cluster.close()
        for call in (cluster.producer, cluster.consumer, cluster.admin):
            with pytest.raises(errors.ClosedError):
                call()
        with pytest.raises(errors.ClosedError):
            cluster.share_consumer(group_id="s")
        with pytest.raises(errors.ClosedError):
            cluster.create_topic("events")
        assert "closed" in repr(cluster)
        assert cluster.is_closed
        assert owner.topics == []


def test_a_dropped_cluster_does_not_become_the_owner(path: Path) -> None:
    with shared(path):
        dropped = shared(path)
        assert not dropped.is_owner
        assert _next_owners() == 1
        del dropped
        gc.collect()
        until(lambda: not _next_owners())


def _next_owners() -> int:
    return sum(each.name == "embedlog-next-owner" for each in threading.enumerate())


def test_clients_keep_their_cluster(path: Path) -> None:
    owner = shared(path)
    producer = shared(path).producer()
    producer.send("events", b"a").result()
    owner.close()
    producer.send("events", b"b").result(WAIT_S)  # the cluster, which nobody else has, took over
    producer.close()
    until(lambda: not _next_owners())
    with pytest.warns(ResourceWarning, match="was not closed"):
        del producer
        gc.collect()


def test_a_close_during_the_opening_closes_what_was_opened(path: Path) -> None:
    runtime = real_runtime()
    directory = SharedDirectory(runtime.files, str(path))
    ownership = Ownership(runtime, directory, lambda: embedlog.open(path, durability="os"))
    ownership.close()
    ownership.take()  # as in a thread that began before the close
    assert ownership.cluster is not None
    assert ownership.cluster.is_closed
    shared(path).close()


def test_the_owner_counts_the_jobs_of_all_workers(path: Path) -> None:
    with (
        shared(path) as owner,
        shared(path) as other,
        owner.queue("jobs") as watched,
        other.queue("jobs") as worked,
    ):
        assert (len(owner.brokers), other.brokers) == (1, [])
        worked.put_many([b"1", b"2"])
        job = worked.get(timeout=30)
        assert job is not None
        assert (watched.stats().locked, watched.stats().ready) == (1, 1)
        assert (worked.stats().locked, worked.stats().ready) == (1, 1)
        job.ack(wait=True)
        assert (watched.stats().locked, watched.stats().ready) == (0, 1)
