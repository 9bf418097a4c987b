"""Ctrl-C during a change of the cluster's state: it takes place as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import embedlog
from embedlog import AlterOperation, ConfigResource
from embedlog.broker.metadata_publisher import MetadataPublisher
from embedlog.controller.metadata_log import MetadataLog
from embedlog.controller.replay import ImageBuilder
from embedlog.controller.state import ControllerState

STEPS = {
    "written": (MetadataLog, "commit"),
    "committed": (ImageBuilder, "build"),
    "in the image": (ControllerState, "publish"),
    "under publication": (MetadataPublisher, "publish"),
}
CHANGES: dict[str, Callable[[embedlog.Cluster, embedlog.Admin], object]] = {
    "create": lambda cluster, _admin: cluster.create_topic("new", 2),
    "delete": lambda _cluster, admin: admin.delete_topics(["old"]).check(),
    "grow": lambda _cluster, admin: admin.create_partitions({"old": 2}).check(),
}
AFTER = {"create": {"old": 1, "new": 2}, "delete": {}, "grow": {"old": 2}}


def interrupt_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Let the next call of a method end with KeyboardInterrupt before it does anything."""
    original = getattr(owner, name)

    def interrupted(*_arguments: object, **_named: object) -> None:
        monkeypatch.setattr(owner, name, original)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


def described(cluster: embedlog.Cluster) -> dict[str, int]:
    with cluster.admin() as admin:
        found = admin.describe_topics(list(admin.list_topics())).check()
    return {name: len(topic.partitions) for name, topic in found.items()}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("step", STEPS)
def test_a_change_that_the_log_has_is_completed(
    step: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster, cluster.admin() as admin:
        cluster.create_topic("old", 1)
        with cluster.producer() as producer:
            producer.append("old", b"1")
        interrupt_once(monkeypatch, *STEPS[step])
        with pytest.raises(KeyboardInterrupt):
            CHANGES[change](cluster, admin)
        assert described(cluster) == AFTER[change]
        with cluster.producer() as producer:
            for name, count in AFTER[change].items():
                for number in range(count):
                    producer.send(name, b"x", partition=number).result(10)
        if change == "delete":
            cluster.create_topic("old", 1)
            with cluster.producer() as producer:
                assert producer.append("old", b"x").offset == 0
        before = described(cluster)
    with embedlog.open(tmp_path) as cluster:
        assert described(cluster) == before
        assert cluster.health() == []


def test_a_setting_of_the_broker_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedlog.open(tmp_path, durability="os") as cluster, cluster.admin() as admin:
        here = ConfigResource("broker", str(cluster.broker().node_id))
        interrupt_once(monkeypatch, ControllerState, "apply_broker_configs")
        with pytest.raises(KeyboardInterrupt):
            admin.incremental_alter_configs(
                {here: {"message.max.bytes": (AlterOperation.SET, 5000)}}
            ).check()
        cluster.create_topic("t", 1)
        with cluster.producer() as producer, pytest.raises(embedlog.errors.MessageTooLarge):
            producer.append("t", b"x" * 6_000)
