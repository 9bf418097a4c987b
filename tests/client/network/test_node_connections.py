"""The choice of a node, its address, and the requests of its connection after an interrupt."""

from __future__ import annotations

from typing import Any

import pytest

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
