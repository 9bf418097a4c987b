"""Ctrl-C while a broker ends: the broker ends all the same, and can be started again."""

from __future__ import annotations

import pytest

from embedlog.broker.metadata_publisher import MetadataPublisher
from embedlog.cluster.cluster import Cluster
from embedlog.cluster.door import Door
from embedlog.cluster.listening import Listening
from embedlog.cluster.running_broker import RunningBroker
from embedlog.controller.brokers import Brokers
from embedlog.storage.directory.log_manager import LogManager
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport
from tests.cluster.conftest import until

STEPS = {
    "gone": (Door, "close"),
    "fenced": (Brokers, "fence"),
    "unreachable": (Listening, "close"),
}


@pytest.mark.parametrize(
    ("way", "owner", "name"),
    [("kill", *each) for each in STEPS.values()]
    + [("stop", *each) for each in STEPS.values()]
    + [("stop", MetadataPublisher, "_apply"), ("kill", MetadataPublisher, "_apply")]
    + [("kill", RunningBroker, "abandon"), ("stop", RunningBroker, "close")],
)
def test_a_broker_whose_end_is_interrupted_starts_again(
    way: str, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster("a", brokers=3, runtime=sim_runtime(seed=5), is_embedded=True) as cluster:
        cluster.create_topic("t", 1, replication_factor=3)
        original = getattr(owner, name)

        def interrupted(*_arguments: object, **_named: object) -> None:
            monkeypatch.setattr(owner, name, original)
            raise KeyboardInterrupt

        monkeypatch.setattr(owner, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(cluster.broker(2), way)()
        assert not cluster.broker(2).is_running
        cluster.broker(2).start()
        until(cluster, lambda: len(cluster.partition("t", 0).isr) == 3)
        with cluster.producer(acks="all") as producer:
            assert producer.send("t", b"x").result(10).offset == 0


@pytest.mark.parametrize(
    ("way", "owner", "name"),
    [
        (way, *step)
        for way in ("kill", "stop")
        for step in [
            (Door, "refuse"),
            (Door, "close"),
            (RunningBroker, "sync_appended"),
            (LogManager, "abandon" if way == "kill" else "close"),
            (RunningBroker, "abandon" if way == "kill" else "close"),
        ]
    ]
    + [("change_disk", RunningBroker, "close"), ("change_disk", Door, "open")]
    + [("start", Door, "open"), ("first", InProcessTransport, "go_through")],
)
@pytest.mark.parametrize("path", [None, "data"])
def test_an_only_broker_that_is_interrupted_starts_again(
    path: str | None, way: str, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(path, runtime=sim_runtime(seed=5), is_embedded=True) as cluster:
        cluster.create_topic("t", 1)
        broker = cluster.broker(1)
        with cluster.producer() as producer:
            producer.send("t", b"x").result(10)
            if way != "first":
                broker.disk.slow(0)
            if way == "start":
                broker.stop()
            original = getattr(owner, name)

            def interrupted(*_arguments: object, **_named: object) -> None:
                monkeypatch.setattr(owner, name, original)
                raise KeyboardInterrupt

            monkeypatch.setattr(owner, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                if way == "change_disk":
                    broker.disk.fill()
                else:
                    getattr(broker, "kill" if way == "first" else way)()
            if way == "first":
                broker.kill()
            assert not broker.is_running
            broker.start()
            assert producer.send("t", b"y").result(10).offset == 1
            assert not broker.is_paused
