"""`RemoteKafka`: the calls of `Kafka` over HTTP."""

from __future__ import annotations

import pytest

from embedlog.errors import ConfigError, IllegalState
from embedlog.testing import Kafka, RemoteKafka
from embedlog.testing.control.client import CannotReach, ControlError


def test_the_calls_are_those_of_the_object(kafka: Kafka, remote: RemoteKafka) -> None:
    assert remote.bootstrap_servers == kafka.bootstrap_servers
    assert [each.node_id for each in remote.brokers] == [1, 2, 3]
    created = remote.create_topic("new", 2, replication_factor=3)
    assert created.partition_count == created["partition_count"] == 2
    assert isinstance(created.topic_id, bytes)
    remote.broker(2).pause()
    assert kafka.broker(2).is_paused and remote.broker(node_id=2).is_paused
    remote.broker(2).resume()
    remote.broker(3).kill(lose_unsynced=True)
    assert not kafka.broker(3).is_running
    assert remote.brokers[2].is_running is False
    remote.broker(3).start()


def test_leaders_links_disks_and_the_controller(kafka: Kafka, remote: RemoteKafka) -> None:
    remote.partition("t", 0).move_to(3)
    assert kafka.partition("t", 0).leader == remote.partition("t", 0).leader == 3
    assert remote.partition("t", 0).end_offsets[3] == 0
    remote.network.split({1}, {2, 3})
    assert kafka.network.is_cut(1, 2) and remote.network.is_cut(1, 2)
    remote.network.heal()
    assert not kafka.network.is_cut(1, 2)
    assert remote.broker(1).disk.directories == kafka.broker(1).disk.directories
    remote.broker(1).disk.slow(5)
    remote.controller.stop()
    assert not kafka.controller.is_running
    remote.controller.start()
    assert remote.controller.is_running


def test_a_fault_of_the_registry_is_kept_at_the_door(kafka: Kafka, remote: RemoteKafka) -> None:
    assert remote.registry.url == kafka.registry.url
    assert remote.registry.register("s", '"string"') == 1
    assert remote.registry.schema_by_id(1).text == '"string"'
    with remote.registry.fault("lookup", status=500, may_miss=True) as fault:
        assert (fault.what, fault.hits, fault.seen) == ("lookup", 0, 0)
    with (
        pytest.raises(AssertionError, match="never acted"),
        remote.registry.fault("lookup", status=500),
    ):
        pass


def test_errors_are_the_classes_of_the_cluster(remote: RemoteKafka) -> None:
    remote.broker(1).kill()
    with pytest.raises(IllegalState, match="does not run"):
        remote.broker(1).kill()
    with pytest.raises(ConfigError, match="no broker 9"):
        remote.broker(9).kill()


def test_misspelt_names_are_refused_with_the_nearest(remote: RemoteKafka) -> None:
    with pytest.raises(AttributeError, match="did you mean 'brokers?'"):
        _ = remote.brokr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="did you mean 'kill'"):
        remote.broker(1).kil()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="did you mean 'lose_unsynced'"):
        remote.broker(1).kill(lose_unsync=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes 0 arguments, 1 given"):
        remote.controller.start(1)  # type: ignore[call-arg]
    with pytest.raises(ControlError, match="expected integer"):
        remote.create_topic("x", "many")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no field 'topc'"):
        _ = remote.create_topic("x").topc  # type: ignore[attr-defined]


def test_names_are_listed(remote: RemoteKafka) -> None:
    assert {"broker", "brokers", "create_topic", "network", "registry"} <= set(dir(remote))
    assert {"kill", "disk", "is_running"} <= set(dir(remote.broker(1)))


def test_nothing_answers() -> None:
    with pytest.raises(CannotReach, match="no control door answers at http://127.0.0.1:1"):
        RemoteKafka("http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="expected http"):
        RemoteKafka("localhost:9099")


def test_a_token_is_sent(kafka: Kafka) -> None:
    door = kafka.listen_control(token="secret")
    assert RemoteKafka(door.url, "secret").broker(1).is_running
    with pytest.raises(ControlError, match="token"):
        RemoteKafka(door.url)
