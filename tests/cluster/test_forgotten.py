"""Clusters that nobody closes: a warning names them, and they are closed without leftovers."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.errors import ClosedError
from embedlog.testing import sim_runtime
from tests.support import left_over


def _drop(make: Any) -> list[str]:
    """Drop the object that `make` returned; return the ResourceWarnings."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
        del made
        gc.collect()
    return [str(each.message) for each in caught if each.category is ResourceWarning]


@pytest.mark.slow
def test_a_dropped_cluster_causes_a_warning_and_is_closed(tmp_path: Path) -> None:
    (told,) = _drop(lambda: embedlog.open(tmp_path))
    assert repr(str(tmp_path)) in told
    assert f"opened at {__file__}:" in told
    # The directory is unlocked, and was closed cleanly.
    with embedlog.open(tmp_path) as cluster:
        assert cluster.broker().core.log_manager.first.directory.clean


@pytest.mark.slow
def test_dropped_listeners_leave_no_thread_and_no_address() -> None:
    before = left_over.threads()

    def make() -> list[Any]:
        clusters = [embedlog.open() for _ in range(10)]
        for cluster in clusters:
            cluster.listen()
        return clusters

    told = _drop(make)
    assert len(told) == 10
    assert all("127.0.0.1:" in each for each in told)
    assert left_over.threads() <= before


@pytest.mark.slow
def test_a_background_thread_ends_with_its_cluster() -> None:
    before = left_over.threads()
    assert len(_drop(lambda: embedlog.open(background=True))) == 1
    assert left_over.threads() <= before


@pytest.mark.slow
def test_every_object_of_a_cluster_keeps_it_open() -> None:
    producer = embedlog.open().producer()
    listener = embedlog.open().listen()
    gc.collect()
    assert producer.send("t", b"x", partition=0).result().offset == 0
    with embedlog.Admin(listener.address) as admin:
        assert list(admin.list_topics()) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer.close()
        del producer, listener
        gc.collect()


@pytest.mark.slow
def test_a_closed_cluster_causes_no_warning() -> None:
    def make() -> None:
        with embedlog.open() as cluster:
            cluster.listen()
            with cluster.producer() as producer:
                producer.send("t", b"x").result()

    assert _drop(make) == []


@pytest.mark.slow
def test_a_dropped_simulated_cluster_causes_no_warning() -> None:
    assert _drop(lambda: Cluster("data", runtime=sim_runtime())) == []


@pytest.mark.slow
def test_a_cluster_that_is_open_at_the_end_is_closed_cleanly(tmp_path: Path) -> None:
    code = (
        "import embedlog\n"
        f"cluster = embedlog.open({str(tmp_path / 'data')!r})\n"
        "listener = cluster.listen()\n"
        "producer = cluster.producer()\n"
        "producer.send('t', b'x').result()\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True
    )
    assert "ResourceWarning: <Cluster at" in done.stderr
    assert "was not closed" in done.stderr
    assert "Traceback" not in done.stderr
    with embedlog.open(tmp_path / "data") as cluster:
        assert cluster.broker().core.log_manager.first.directory.clean
        assert cluster.topics == ["t"]


def test_a_closed_listener_is_not_shown() -> None:
    with embedlog.open() as cluster:
        first = cluster.listen()
        assert repr(first) == f"<BrokerListener {first.address}>"
        first.close()
        assert repr(first) == f"<BrokerListener {first.address}, closed>"
        assert repr(cluster) == "<Cluster in memory, 0 topics>"
        again = cluster.listen(port=first.port)
        assert repr(cluster) == f"<Cluster in memory, 0 topics, {again.address}>"


@pytest.mark.parametrize(
    "call",
    [
        lambda cluster: cluster.topics,
        lambda cluster: cluster.create_topic("t"),
        lambda cluster: cluster.listen(),
        lambda cluster: cluster.connect(),
        lambda cluster: cluster.producer(),
        lambda cluster: cluster.consumer(),
        lambda cluster: cluster.admin(),
        lambda cluster: cluster.maintain(),
    ],
)
def test_a_closed_cluster_refuses_every_call(call: Any) -> None:
    cluster = embedlog.open()
    cluster.close()
    with pytest.raises(ClosedError, match="the cluster was closed"):
        call(cluster)
    assert repr(cluster) == "<Cluster in memory, closed>"
    cluster.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda producer, consumer, admin: producer.send("t", b"x").result(),
        lambda producer, consumer, admin: producer.partitions_for("other"),
        lambda producer, consumer, admin: consumer.poll(1000),
        lambda producer, consumer, admin: consumer.end_offsets([("t", 0)]),
        lambda producer, consumer, admin: admin.list_topics(),
        lambda producer, consumer, admin: admin.delete_topics(["t"]).check(),
    ],
)
def test_clients_of_a_closed_cluster_fail_at_once(call: Any) -> None:
    cluster = embedlog.open()
    producer, consumer, admin = cluster.producer(), cluster.consumer(), cluster.admin()
    producer.send("t", b"x", partition=0).result()
    consumer.assign([("t", 0)])
    cluster.close()
    with pytest.raises(ClosedError):
        call(producer, consumer, admin)


_OUT_OF_DESCRIPTORS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
import embedlog

directory, durability, listens = sys.argv[1:4]
held = []
with embedlog.open(directory, durability=durability) as cluster:
    cluster.create_topic("big", 30)
    if listens == "True":
        cluster.listen()
    with cluster.producer() as producer:
        for partition in range(30):
            producer.send("big", b"x", partition=partition).result()
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_close_without_descriptors_loses_nothing(
    tmp_path: Path, durability: str, listens: bool
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OUT_OF_DESCRIPTORS, str(tmp_path), durability, str(listens)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    with embedlog.open(tmp_path) as cluster, cluster.consumer() as consumer:
        places = [("big", partition) for partition in range(30)]
        assert set(consumer.end_offsets(places).values()) == {1}
