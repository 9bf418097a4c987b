"""The choice of a node, its address, and the requests of its connection after an interrupt."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.client.network.bootstrap import FoundNode
from embedlog.client.network.node_requests import NodeRequest, NodeRequests
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.transport import ANY_NODE
from tests.client.network.test_network_client import FakeChannels, client, finish
from tests.client.scripted_broker import ScriptedBroker
from wire.schemas.metadata import MetadataRequest


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def channels(runtime: SimRuntime) -> FakeChannels:
    return FakeChannels(ScriptedBroker({"one": 1}, runtime), runtime)


def all_topics() -> MetadataRequest:
    return MetadataRequest(topics=None)


def test_a_request_between_two_queues_is_lost_by_no_interrupt() -> None:
    requests = NodeRequests(5)
    first, second = (NodeRequest(all_topics(), None, 1_000, Pending()) for _ in range(2))
    requests.add(first)
    requests.add(second)
    assert requests.next_to_write() is first
    assert requests.take_all() == [first, second], "it was not written yet"
    requests.add(first)
    assert requests.next_to_write() is first
    requests.written(first)
    assert requests.next_answered() is first
    assert requests.take_all() == [first], "its answer was not taken yet"
    assert requests.take_all() == []


def test_a_connection_that_is_being_made_is_not_idle(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    runtime.clock.advance(3_600_000)
    network = client(channels, runtime)
    network.set_nodes({1: ("node", 10)})
    network.prepare(1)
    for _ in range(4):
        network.poll()
    assert network.is_ready(1)


def test_a_lost_connection_is_made_anew_soon_whatever_was_before_it(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    channels.refuses.add(("first", 1))
    network = client(channels, runtime)
    for _ in range(6):
        pending = network.send(ANY_NODE, all_topics())
        while not network.wait(pending, 5_000):
            pass
    channels.refuses.clear()
    finish(network, network.send(ANY_NODE, all_topics()))
    channels.cut()
    network.poll()
    lost_ms = runtime.clock.monotonic_ms()
    finish(network, network.send(ANY_NODE, all_topics()))
    assert channels.attempts[-1][0] - lost_ms <= 60, "the first back-off is 50 ms"


def test_the_first_addresses_do_not_count_while_one_node_is_well(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    channels.refuses.add(("bad", 10))
    network = client(channels, runtime)
    network.set_nodes({1: ("bad", 10), 2: ("good", 20)})
    failed = network.send(1, all_topics())
    while not network.wait(failed, 1_000):
        pass
    channels.throttle_ms = 1_000
    finish(network, network.send(2, all_topics()))
    throttled = network.send(ANY_NODE, all_topics())
    while not network.wait(throttled, 1_000):
        pass
    assert ("first", 1) not in {address for _, address in channels.attempts}


@pytest.mark.parametrize("address", [("node", 11), ("another", 10)])
def test_a_coordinator_is_asked_at_its_new_address(
    channels: FakeChannels, runtime: SimRuntime, address: tuple[str, int]
) -> None:
    network = client(channels, runtime)
    asked: list[Any] = []
    for host, port in (("node", 10), address):
        chosen = network.set_coordinator(1, host, port)
        finish(network, network.send(chosen, all_topics()))
        asked.append(channels.attempts[-1][1])
    assert asked == [("node", 10), address]
    assert [channel.address for channel in channels.open] == [address]


def found(host: str, cluster_id: str = "scripted") -> FoundNode:
    return FoundNode(host, 1, cluster_id, 1)


def test_addresses_that_are_looked_up_are_looked_up_again_when_no_node_answers(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    nodes = [found("owner"), found("gone")]
    channels.refuses.add(("gone", 1))
    network = client(channels, runtime, find=lambda: nodes)
    finish(network, network.send(ANY_NODE, all_topics()))
    network.set_nodes({1: ("owner", 1)}, "scripted")
    finish(network, network.send(1, all_topics()))
    channels.refuses.add(("owner", 1))
    channels.cut()
    network.poll()
    nodes[:] = [found("next")]
    for _ in range(20):
        pending = network.send(ANY_NODE, all_topics())
        while not network.wait(pending, 5_000):
            pass
        if pending.error() is None:
            break
    assert [channel.address for channel in channels.open] == [("next", 1)]
    attempts = [address for _, address in channels.attempts]
    assert "gone" not in {host for host, _ in attempts[attempts.index(("next", 1)) :]}


def test_addresses_are_not_looked_up_while_a_node_answers(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    looked = []

    def find() -> list[FoundNode]:
        looked.append(1)
        return [found("owner")]

    network = client(channels, runtime, find=find)
    finish(network, network.send(ANY_NODE, all_topics()))
    network.set_nodes({1: ("owner", 1)}, "scripted")
    count = len(looked)
    for _ in range(3):
        finish(network, network.send(ANY_NODE, all_topics()))
    assert len(looked) == count


def test_a_looked_up_node_is_told_the_identity_that_it_must_have(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    channels.served[18] = (0, 5)
    channels.identities[("stranger", 1)] = "theirs", 1
    nodes = [found("stranger", "mine")]
    network = client(channels, runtime, find=lambda: nodes)
    pending = network.send(ANY_NODE, all_topics())
    while not network.wait(pending, 5_000):
        pass
    assert pending.error() is not None
    assert channels.broker.requests == []
    assert set(channels.expected) == {("mine", 1)}
    nodes.append(found("owner", "mine"))
    finish(network, network.send(ANY_NODE, all_topics()))
    assert set(channels.expected) == {("mine", 1)}


def test_a_short_absence_of_a_looked_up_node_is_not_worth_a_warning(
    channels: FakeChannels, runtime: SimRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    channels.refuses.add(("owner", 1))
    network = client(channels, runtime, find=lambda: [found("owner")], reconnect_backoff_max_ms=200)

    def fail(times: int) -> None:
        for _ in range(times):
            pending = network.send(ANY_NODE, all_topics())
            while not network.wait(pending, 5_000):
                pass

    fail(40)
    assert not caplog.records
    fail(20)
    assert "cannot use owner:1" in caplog.text
