"""The network client against scripted connections and a simulated clock: no socket, no waiting."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import pytest

from embedlog import errors
from embedlog.client.network.network_client import NetworkClient
from embedlog.client.parse_settings import parse
from embedlog.client.producer.producer import Producer
from embedlog.client.settings import COMMON
from embedlog.errors import ClosedError, TimedOut
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.testing.loopback_transport import LoopbackTransport
from embedlog.transport import ANY_NODE
from tests.client.scripted_broker import VERSIONS, ScriptedBroker
from wire.connection import ServerConnection
from wire.framing import FrameReader
from wire.schemas.api_versions import ApiVersion, ApiVersionsResponse
from wire.schemas.list_offsets import ListOffsetsRequest
from wire.schemas.metadata import MetadataRequest
from wire.schemas.produce import ProduceRequest

SERVED = {**VERSIONS, 18: (0, 4)}


class Event:
    is_refused = False

    def __init__(self, channel: Any, frame: Any = None, reason: str = "") -> None:
        self.channel = channel
        self.frame = frame
        self.reason = reason


class FakeChannel:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address


class FakeChannels:
    """Connections to a scripted broker; `holds` keeps answers back, `refuses` holds addresses."""

    is_waiting = False

    def __init__(self, broker: ScriptedBroker, runtime: SimRuntime) -> None:
        self.broker = broker
        self.clock = runtime.clock
        self.events: deque[Event] = deque()
        self.attempts: list[tuple[int, tuple[str, int]]] = []
        self.requests: list[tuple[str, int]] = []
        self.open: list[FakeChannel] = []
        self.setup_timeouts: list[int] = []
        self.refuses: set[tuple[str, int]] = set()
        self.holds = False
        self.is_deaf = False
        self.served = dict(SERVED)
        self.identities: dict[tuple[str, int], tuple[str, int]] = {}
        """By address: cluster id and node id of a listener that checks whom the client expects."""
        self.expected: list[tuple[str | None, int]] = []
        """Cluster and node id in each ApiVersions of version 5."""
        self.throttle_ms = 0
        self.write_count = 0

    def connect(self, host: str, port: int, *, timeout_ms: int) -> FakeChannel:
        self.setup_timeouts.append(timeout_ms)
        channel = FakeChannel((host, port))
        self.attempts.append((self.clock.monotonic_ms(), channel.address))
        if channel.address in self.refuses:
            self.events.append(Event(channel, reason="connection refused"))
        else:
            self.open.append(channel)
            self.events.append(Event(channel))
        return channel

    def send(self, channel: FakeChannel, buffers: Any) -> None:
        self.write_count += 1
        if not self.is_deaf:
            for frame in FrameReader().feed(b"".join(buffers)):
                self.serve(channel, frame)

    def serve(self, channel: FakeChannel, frame: memoryview) -> None:
        head = ServerConnection().parse(frame)
        version = head.api_version
        if head.api_key == 18:
            if version > self.served[18][1]:
                listed = ApiVersion(api_key=18, min_version=0, max_version=self.served[18][1])
                answer: Any = ApiVersionsResponse(error_code=35, api_keys=[listed])
                version = 0
            elif version >= 5 and not self._is_meant(channel, head.decode()):
                answer = ApiVersionsResponse(error_code=129)
            else:
                keys = [
                    ApiVersion(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in self.served.items()
                ]
                answer = ApiVersionsResponse(api_keys=keys)
            self.requests.append(("ApiVersions", head.api_version))
        else:
            request = head.decode()
            self.requests.append((type(request).__name__, version))
            if self.holds:
                return
            answer = self.broker.answer(request)
            if answer is None:
                return
            if self.throttle_ms:
                answer.throttle_time_ms, self.throttle_ms = self.throttle_ms, 0
        data = ServerConnection().respond(head.correlation_id, head.api_key, version, answer)
        self.events.append(Event(channel, memoryview(b"".join(data))[4:]))

    def _is_meant(self, channel: FakeChannel, request: Any) -> bool:
        meant = request.cluster_id, request.node_id
        self.expected.append(meant)
        return meant == (None, -1) or self.identities.get(channel.address, meant) == meant

    def poll(self, timeout_ms: int | None) -> list[Event]:
        if not self.events and timeout_ms:
            self.clock.advance(timeout_ms)
        events = list(self.events)
        self.events.clear()
        return events

    def close(self, channel: FakeChannel) -> None:
        if channel in self.open:
            self.open.remove(channel)

    def close_all(self) -> None:
        self.open.clear()

    def wake(self) -> None:
        """Nobody sleeps here."""

    def cut(self, reason: str = "reset by peer") -> None:
        for channel in list(self.open):
            self.close(channel)
            self.events.append(Event(channel, reason=reason))


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=1)


@pytest.fixture
def channels(runtime: SimRuntime) -> FakeChannels:
    return FakeChannels(ScriptedBroker({"one": 1}, runtime), runtime)


def client(
    channels: FakeChannels,
    runtime: SimRuntime,
    *addresses: tuple[str, int],
    find: Any = None,
    **settings: Any,
) -> NetworkClient:
    return NetworkClient(
        addresses or [("first", 1)],
        parse(COMMON, settings),
        runtime=runtime,
        channels=channels,
        find=find,
    )


def finish(network: NetworkClient, pending: Pending[Any]) -> Any:
    for _ in range(1000):
        if network.wait(pending, 1_000):
            return pending.result()
    raise AssertionError("no outcome")


def test_a_request_connects_and_agrees_on_versions(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    assert network.versions(ANY_NODE) is None
    response = finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert response.cluster_id == "scripted"
    # The broker refuses the newest ApiVersions; the client repeats it in the listed version.
    assert channels.requests == [("ApiVersions", 5), ("ApiVersions", 4), ("MetadataRequest", 13)]
    assert network.versions(ANY_NODE) == channels.served


def test_the_newest_common_version_is_used(channels: FakeChannels, runtime: SimRuntime) -> None:
    channels.served[3] = (0, 7)
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert channels.requests[-1] == ("MetadataRequest", 7)
    channels.served[3] = (4, 9)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None), version=5))
    assert channels.requests[-1] == ("MetadataRequest", 5)


def test_a_request_that_no_version_can_carry_is_refused(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    del channels.served[2]
    network = client(channels, runtime)
    pending = network.send(ANY_NODE, ListOffsetsRequest())
    while not network.wait(pending, 1000):
        pass
    assert isinstance(pending.error(), errors.UnsupportedVersion)
    assert "broker none" in str(pending.error())
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    pending = network.send(ANY_NODE, MetadataRequest(topics=[], allow_auto_topic_creation=False))
    channels.served[3] = (0, 13)
    finish(network, pending)


def test_an_unanswered_request_closes_the_connection(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    channels.holds = True
    first = network.send(ANY_NODE, MetadataRequest(topics=None))
    network.wait(first, 100)
    network.wait(first, 100)
    runtime.clock.advance(50)
    second = network.send(ANY_NODE, MetadataRequest(topics=None))
    while not first.done():
        network.wait(first, 1000)
    assert runtime.clock.monotonic_ms() >= 500
    assert isinstance(first.error(), errors.RequestTimedOut)
    assert isinstance(second.error(), errors.Network)
    assert "a request timed out" in str(second.error())
    assert channels.open == []
    channels.holds = False
    assert finish(network, network.send(ANY_NODE, MetadataRequest(topics=None))).controller_id == 1


def test_the_deadline_of_an_answered_request_does_not_count_for_the_next(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    runtime.clock.advance(300)
    sent_ms = runtime.clock.monotonic_ms()
    channels.holds = True
    pending = network.send(ANY_NODE, MetadataRequest(topics=None))
    assert not network.wait(pending, 499)
    assert runtime.clock.monotonic_ms() == sent_ms + 499
    network.wait(pending, 1_000)
    assert runtime.clock.monotonic_ms() == sent_ms + 500
    assert isinstance(pending.error(), errors.RequestTimedOut)


def test_a_request_behind_a_slower_one_has_a_deadline_of_its_own(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.holds = True
    slow = network.send(ANY_NODE, MetadataRequest(topics=None), timeout_ms=60_000)
    quick = network.send(ANY_NODE, MetadataRequest(topics=None), timeout_ms=500)
    sent_ms = runtime.clock.monotonic_ms()
    network.poll()
    while not quick.done():
        network.wait(quick, 10_000)
    assert runtime.clock.monotonic_ms() == sent_ms + 500
    assert isinstance(quick.error(), errors.RequestTimedOut)
    assert isinstance(slow.error(), errors.Network)


def test_a_request_costs_the_same_however_many_nodes_there_are(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    costs: list[int] = []
    for node_count in (1, 100):
        network.set_nodes({node_id: (f"node{node_id}", 1) for node_id in range(node_count)})
        finish(network, network.send(0, MetadataRequest(topics=None)))
        calls: list[str] = []
        sys.setprofile(lambda _frame, event, _argument: calls.append(event))  # noqa: B023
        finish(network, network.send(0, MetadataRequest(topics=None)))
        sys.setprofile(None)
        costs.append(calls.count("call"))
    assert costs[0] == costs[1]


def test_a_broken_connection_fails_what_is_on_the_way(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    channels.holds = True
    pending = network.send(ANY_NODE, MetadataRequest(topics=None))
    for _ in range(3):
        network.wait(pending, 10)
    channels.cut("reset by peer")
    network.wait(pending, 10)
    assert isinstance(pending.error(), errors.Network)
    assert "first:1" in str(pending.error())
    assert "reset by peer" in str(pending.error())


def test_an_unreachable_node_is_tried_less_and_less_often(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    channels.refuses.add(("first", 1))
    network = client(channels, runtime)
    for _ in range(12):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        while not network.wait(pending, 5_000):
            pass
        assert isinstance(pending.error(), errors.Network)
    times = [at for at, _ in channels.attempts]
    pauses = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    expected = [min(50 << number, 1000) for number in range(11)]
    assert all(
        0.8 * want <= pause <= 1.2 * want + 1 for pause, want in zip(pauses, expected, strict=True)
    ), pauses


def test_every_first_address_is_tried(channels: FakeChannels, runtime: SimRuntime) -> None:
    channels.refuses |= {("first", 1), ("second", 2)}
    network = client(channels, runtime, ("first", 1), ("second", 2), ("third", 3))
    for _ in range(10):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        while not network.wait(pending, 5_000):
            pass
        if pending.error() is None:
            break
    assert pending.error() is None
    assert channels.attempts[-1][1] == ("third", 3)


def test_the_clusters_own_addresses_replace_the_first_ones(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    network.set_nodes({1: ("node", 10), 2: ("other", 20)})
    assert [channel.address for channel in channels.open] == []
    finish(network, network.send(2, MetadataRequest(topics=None)))
    assert [channel.address for channel in channels.open] == [("other", 20)]
    network.set_nodes({1: ("node", 10)})
    pending = network.send(2, MetadataRequest(topics=None))
    assert isinstance(pending.error(), errors.Network)
    assert channels.open == []


def test_when_all_nodes_fail_the_first_addresses_count_again(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    network.set_nodes({1: ("gone", 10)})
    channels.refuses.add(("gone", 10))
    for _ in range(3):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        while not network.wait(pending, 5_000):
            pass
    assert pending.error() is None
    assert channels.attempts[-1][1] == ("first", 1)


def test_a_throttled_node_is_left_alone(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    channels.throttle_ms = 700
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    before = runtime.clock.monotonic_ms()
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert runtime.clock.monotonic_ms() - before == 700


def test_throttling_ends_with_the_connection(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    channels.throttle_ms = 60_000
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.cut()
    network.poll()
    before = runtime.clock.monotonic_ms()
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert len(channels.attempts) == 2
    assert runtime.clock.monotonic_ms() - before < 1_000, "only the back-off"


def test_a_queued_request_leaves_when_the_throttling_of_an_answer_ends(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = NetworkClient(
        [("first", 1)],
        {**parse(COMMON), "max.in.flight.requests.per.connection": 1},
        runtime=runtime,
        channels=channels,
    )
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.throttle_ms = 700
    first, second = (network.send(ANY_NODE, MetadataRequest(topics=None)) for _ in range(2))
    finish(network, first)
    before = runtime.clock.monotonic_ms()
    assert network.wait(second, 10_000)
    assert runtime.clock.monotonic_ms() - before == 700


def test_only_so_many_requests_are_on_the_way(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = NetworkClient(
        [("first", 1)],
        {**parse(COMMON), "max.in.flight.requests.per.connection": 2},
        runtime=runtime,
        channels=channels,
    )
    channels.holds = True
    pendings = [network.send(ANY_NODE, MetadataRequest(topics=None)) for _ in range(5)]
    for _ in range(4):
        network.wait(pendings[0], 10)
    assert channels.requests.count(("MetadataRequest", 13)) == 2


def test_acks_0_is_done_when_it_is_written(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    pending = network.send(ANY_NODE, ProduceRequest(acks=0))
    assert pending.done()
    assert pending.result() is None
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))


class StandingStill(FakeChannels):
    """A peer that reads nothing for now."""

    taken_max = 0

    def send(self, channel: Any, buffers: Any) -> None:
        super().send(channel, buffers)
        channel.given_size = getattr(channel, "given_size", 0) + sum(map(len, buffers))
        channel.sent_size = min(channel.given_size, self.taken_max)

    def take(self, size: int) -> None:
        self.taken_max = size
        for channel in self.open:
            channel.sent_size = min(channel.given_size, size)  # type: ignore[attr-defined]


def test_acks_0_is_done_when_the_bytes_have_left(runtime: SimRuntime) -> None:
    channels = StandingStill(ScriptedBroker({"one": 1}, runtime), runtime)
    channels.take(1 << 30)
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    (channel,) = channels.open
    before = channel.given_size  # type: ignore[attr-defined]
    channels.take(before)
    first = network.send(ANY_NODE, ProduceRequest(acks=0))
    size = channel.given_size - before  # type: ignore[attr-defined]
    second = network.send(ANY_NODE, ProduceRequest(acks=0))
    network.poll()
    assert not first.done()
    channels.take(before + size)
    assert network.wait(first, 1_000)
    assert not second.done()
    channels.cut()
    network.poll()
    assert isinstance(second.error(), errors.Network)


def test_acks_0_that_does_not_leave_times_out(runtime: SimRuntime) -> None:
    channels = StandingStill(ScriptedBroker({"one": 1}, runtime), runtime)
    channels.take(1 << 30)
    network = client(channels, runtime, request_timeout_ms=1_000)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.take(0)
    pending = network.send(ANY_NODE, ProduceRequest(acks=0))
    network.wait(pending, 5_000)
    network.wait(pending, 5_000)
    assert isinstance(pending.error(), errors.RequestTimedOut)


def test_buffer_memory_bounds_what_has_not_left(runtime: SimRuntime) -> None:
    channels = StandingStill(ScriptedBroker({"one": 1}, runtime), runtime)
    channels.take(1 << 30)
    settings = {"acks": 0, "linger_ms": 0, "batch_size": 1_000, "buffer_memory": 10_000}
    network = client(channels, runtime)
    with Producer(network, max_block_ms=100, **settings) as producer:
        assert producer.send("one", b"v").result().offset == -1
        channels.take(0)
        futures = [producer.send("one", bytes(900)) for _ in range(20)]
        refused = [future for future in futures if future.batch.outcome is not None]
        assert refused
        assert all(isinstance(each.exception(), TimedOut) for each in refused)
        assert not any(future.done() for future in futures if future not in refused)
        channels.take(1 << 30)
        producer.flush()
        assert [each.result().offset for each in futures if each not in refused] == [-1] * (
            20 - len(refused)
        )


class TwoNodes(FakeChannels):
    """A cluster whose second node can hold back its answers to Produce."""

    holds_second = False

    def __init__(self, broker: ScriptedBroker, runtime: SimRuntime) -> None:
        super().__init__(broker, runtime)
        self.held: list[Event] = []

    def serve(self, channel: FakeChannel, frame: memoryview) -> None:
        count = len(self.events)
        super().serve(channel, frame)
        is_produce = ServerConnection().parse(frame).api_key == 0
        if self.holds_second and is_produce and channel.address[1] == 9093:
            while len(self.events) > count:
                self.held.append(self.events.pop())

    def release(self) -> None:
        self.holds_second = False
        self.events.extend(self.held)


def test_a_topic_in_use_outlives_the_refresh_of_metadata(runtime: SimRuntime) -> None:
    """metadata.max.idle.ms is as long as metadata.max.age.ms: only use keeps a topic known."""
    broker = ScriptedBroker({"t": 4}, runtime)
    broker.leaders = {("t", 1): 2, ("t", 3): 2}
    channels = TwoNodes(broker, runtime)
    producer = Producer(client(channels, runtime), linger_ms=0)
    keys = [b"%d" % number for number in range(16)]
    producer.send_batch("t", keys, keys=keys).result()
    clock = runtime.clock
    while clock.monotonic_ms() < 299_900:
        producer.send("t", b"v", key=b"1").result(5)
        clock.advance(min(10_000, 299_950 - clock.monotonic_ms()))
    channels.holds_second = True
    future = producer.send_batch("t", keys, keys=keys)
    asked = channels.requests.count(("MetadataRequest", 13))
    for _ in range(3):
        clock.advance(100)
        assert not future.done()
    assert channels.requests.count(("MetadataRequest", 13)) == asked + 1
    assert len(producer.partitions_for("t")) == 4
    assert channels.requests.count(("MetadataRequest", 13)) == asked + 1
    channels.release()
    assert sum(each.record_count for each in future.result(0)) == 16
    producer.close()


def test_an_answer_is_matched_to_what_was_sent(runtime: SimRuntime) -> None:
    """Even if the metadata of the topic has changed meanwhile."""
    broker = ScriptedBroker({"t": 4}, runtime)
    broker.leaders = {("t", 1): 2, ("t", 3): 2}
    channels = TwoNodes(broker, runtime)
    settings = {"linger.ms": 0, "metadata.max.age.ms": 1_000, "max.block.ms": 1_000}
    producer = Producer(client(channels, runtime), settings)
    keys = [b"%d" % number for number in range(16)]
    producer.send_batch("t", keys, keys=keys).result()
    channels.holds_second = True
    future = producer.send_batch("t", keys, keys=keys)
    del broker.topics["t"]
    for _ in range(5):
        runtime.clock.advance(500)
        assert not future.done()
    with pytest.raises(TimedOut):
        producer.send("t", b"to a topic that is forgotten").result()
    channels.release()
    assert sum(each.record_count for each in future.result(1)) == 16
    producer.close()


def test_what_is_held_leaves_in_one_write(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    count = channels.write_count
    network.writes.hold()
    asked = [network.send(ANY_NODE, MetadataRequest(topics=None)) for _ in range(3)]
    assert channels.write_count == count
    network.writes.release()
    assert channels.write_count == count + 1
    for pending in asked:
        finish(network, pending)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert channels.write_count == count + 2


def test_what_is_held_for_a_connection_that_is_dropped_is_forgotten(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    count = channels.write_count
    network.writes.hold()
    lost = network.send(ANY_NODE, MetadataRequest(topics=None))
    network.drop_requests("interrupted")
    assert isinstance(lost.error(), errors.Network)
    assert channels.write_count == count
    runtime.clock.advance(10_000)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))


def test_an_idle_connection_is_closed(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime, connections_max_idle_ms=10_000)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    runtime.clock.advance(9_000)
    network.poll()
    assert len(channels.open) == 1
    runtime.clock.advance(1_000)
    network.poll()
    assert channels.open == []
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))


def test_a_response_to_nothing_closes_the_connection(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.events.append(Event(channels.open[0], memoryview(bytes(64))))
    network.poll()
    assert channels.open == []


def test_closing_fails_what_waits(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    pending = network.send(ANY_NODE, MetadataRequest(topics=None))
    network.close()
    network.close()
    assert isinstance(pending.error(), errors.Network)
    refused = network.send(ANY_NODE, MetadataRequest(topics=None))
    assert isinstance(refused.error(), ClosedError)


def test_a_node_is_ready_once_it_is_connected_and_has_room(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = NetworkClient(
        [("first", 1)],
        {**parse(COMMON), "max.in.flight.requests.per.connection": 2},
        runtime=runtime,
        channels=channels,
    )
    assert not network.is_ready(1)
    assert network.prepare(1) is None, "nobody knows the node"
    network.set_nodes({1: ("node", 10)})
    assert not network.is_ready(1)
    assert network.prepare(1) is None, "it is being connected"
    assert network.prepare(1) is None
    assert len(channels.attempts) == 1
    for _ in range(3):
        network.poll()
    assert network.is_ready(1)
    channels.holds = True
    for _ in range(2):
        assert network.is_ready(1)
        network.send(1, MetadataRequest(topics=None))
    assert not network.is_ready(1)
    channels.cut()
    network.poll()
    assert network.failure_count == 1
    delay = network.prepare(1)
    assert delay is not None
    assert 40 <= delay <= 60
    runtime.clock.advance(delay)
    channels.holds = False
    assert network.prepare(1) is None
    for _ in range(3):
        network.poll()
    assert network.is_ready(1)


def test_a_node_that_never_says_its_versions_is_news_though_nothing_waits_for_it(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    network.set_nodes({1: ("node", 10)})
    channels.is_deaf = True
    network.prepare(1)
    nothing: Pending[Any] = Pending()
    while network.failure_count == 0:
        network.wait(nothing, 60_000)
    assert runtime.clock.monotonic_ms() == 500
    assert network.prepare(1) is not None


def test_a_node_that_never_says_its_versions_is_noticed_in_a_client_at_rest(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    network.set_nodes({1: ("node", 10), 2: ("other", 20)})
    finish(network, network.send(1, MetadataRequest(topics=None)))
    nothing: Pending[Any] = Pending()
    network.wait(nothing, 1_000)  # no request has a deadline any more
    channels.is_deaf = True
    began_ms = runtime.clock.monotonic_ms()
    network.prepare(2)
    while network.failure_count == 0:
        network.wait(nothing, 60_000)
    assert runtime.clock.monotonic_ms() - began_ms == 500


def test_a_queued_request_leaves_in_time_after_an_error_in_a_callback(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    """The error comes before the client has noted how long the answer throttles it."""
    network = NetworkClient(
        [("first", 1)],
        {**parse(COMMON), "max.in.flight.requests.per.connection": 1},
        runtime=runtime,
        channels=channels,
    )
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.throttle_ms = 400
    first, second = (network.send(ANY_NODE, MetadataRequest(topics=None)) for _ in range(2))

    def fail(_pending: Pending[Any]) -> None:
        raise ZeroDivisionError

    first.add_callback(fail)
    began_ms = runtime.clock.monotonic_ms()
    with pytest.raises(ZeroDivisionError):
        network.wait(first, 1_000)
    assert network.wait(second, 10_000)
    assert runtime.clock.monotonic_ms() - began_ms == 400


def test_a_throttled_node_says_for_how_long(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    network.set_nodes({1: ("node", 10), 2: ("other", 20)})
    for node_id in (1, 2):
        finish(network, network.send(node_id, MetadataRequest(topics=None)))
    channels.throttle_ms = 700
    finish(network, network.send(1, MetadataRequest(topics=None)))
    assert not network.is_ready(1)
    assert network.prepare(1) == 700
    for _ in range(5):
        finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert runtime.clock.monotonic_ms() < 700, "the other node was asked"
    runtime.clock.advance(700)
    assert network.is_ready(1)
    assert network.prepare(1) is None


def test_a_broker_that_throttles_by_itself_is_not_spared_by_the_client(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    """Before KIP-219 (Metadata 6) the broker delayed its answer instead."""
    network = client(channels, runtime)
    channels.served[3] = (0, 5)
    channels.throttle_ms = 700
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert runtime.clock.monotonic_ms() < 700


def test_the_time_to_connect_grows_while_it_fails(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    channels.refuses.add(("first", 1))
    network = client(channels, runtime)
    for _ in range(4):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        while not network.wait(pending, 5_000):
            pass
    pairs = zip(channels.setup_timeouts, (10_000, 20_000, 30_000, 30_000), strict=True)
    assert all(0.8 * want <= got <= min(1.2 * want, 30_000) for got, want in pairs)


def test_a_time_out_fails_all_that_is_in_flight_in_order(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.holds = True
    failed: list[int] = []
    for number in range(4):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        pending.add_callback(lambda _, number=number: failed.append(number))
        runtime.clock.advance(10)
    while not failed:
        network.wait(pending, 1_000)
    assert failed == [0, 1, 2, 3]
    assert runtime.clock.monotonic_ms() == 500


def test_a_node_that_hangs_is_noticed_while_another_keeps_answering(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, request_timeout_ms=500)
    network.set_nodes({1: ("one", 1), 2: ("two", 2)})
    finish(network, network.send(2, MetadataRequest(topics=None)))
    channels.holds = True
    hanging = network.send(2, MetadataRequest(topics=None))
    channels.holds = False
    for _ in range(60):
        finish(network, network.send(1, MetadataRequest(topics=None)))
        runtime.clock.advance(10)
    assert isinstance(hanging.error(), errors.RequestTimedOut)


def test_without_recovery_the_first_addresses_are_asked_only_at_first(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    network = client(channels, runtime, metadata_recovery_strategy="none")
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    network.set_nodes({1: ("gone", 10)})
    channels.refuses.add(("gone", 10))
    for _ in range(4):
        pending = network.send(ANY_NODE, MetadataRequest(topics=None))
        while not network.wait(pending, 5_000):
            pass
        assert isinstance(pending.error(), errors.Network)
    network.bootstrap_again()
    assert {address for _, address in channels.attempts[1:]} == {("gone", 10)}


def test_bootstrapping_again_forgets_the_nodes(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime)
    network.set_nodes({1: ("node", 10)})
    finish(network, network.send(1, MetadataRequest(topics=None)))
    network.bootstrap_again()
    assert channels.open == []
    assert not network.is_ready(1)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert [channel.address for channel in channels.open] == [("first", 1)]


def test_a_node_is_told_for_whom_it_is_taken(channels: FakeChannels, runtime: SimRuntime) -> None:
    channels.served[18] = (0, 5)
    network = client(channels, runtime)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    network.set_nodes({1: ("node", 10)}, "mine")
    finish(network, network.send(1, MetadataRequest(topics=None)))
    coordinator = network.set_coordinator(2, "other", 20)
    finish(network, network.send(coordinator, MetadataRequest(topics=None)))
    assert channels.expected == [(None, -1), ("mine", 1), ("mine", 2)]
    network.set_nodes({1: ("node", 10)}, "theirs")
    channels.cut()
    network.poll()
    finish(network, network.send(1, MetadataRequest(topics=None)))
    assert channels.expected[-1] == ("theirs", 1)
    assert ("ApiVersions", 4) not in channels.requests


@pytest.mark.parametrize(
    "settings", [{"metadata.recovery.strategy": "none"}, {"metadata.cluster.check.enable": False}]
)
def test_a_node_is_not_told_for_whom_it_is_taken_where_that_is_switched_off(
    channels: FakeChannels, runtime: SimRuntime, settings: dict[str, Any]
) -> None:
    channels.served[18] = (0, 5)
    network = client(channels, runtime, **settings)
    network.set_nodes({1: ("node", 10)}, "mine")
    finish(network, network.send(1, MetadataRequest(topics=None)))
    assert channels.expected == [(None, -1)]


@pytest.mark.parametrize("identity", [("mine", 2), ("theirs", 1)])
def test_a_node_that_is_another_sends_back_to_the_first_addresses(
    channels: FakeChannels, runtime: SimRuntime, identity: tuple[str, int]
) -> None:
    channels.served[18] = (0, 5)
    channels.identities[("node", 10)] = identity
    network = client(channels, runtime)
    network.set_nodes({1: ("node", 10), 3: ("third", 30)}, "mine")
    finish(network, network.send(3, MetadataRequest(topics=None)))
    pending = network.send(1, MetadataRequest(topics=None))
    while not network.wait(pending, 1_000):
        pass
    assert isinstance(pending.error(), errors.Network)
    assert channels.open == [], "no address is trusted"
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert [channel.address for channel in channels.open] == [("first", 1)]
    network.set_nodes({1: ("elsewhere", 11)}, identity[0])
    finish(network, network.send(1, MetadataRequest(topics=None)))
    assert channels.attempts[-1][1] == ("elsewhere", 11)


def test_it_says_how_far_its_connections_are(channels: FakeChannels, runtime: SimRuntime) -> None:
    network = client(channels, runtime, ("first", 1), ("second", 2))
    assert repr(network) == "<NetworkClient of first:1 (not connected), second:2 (not connected)>"
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    assert repr(network).count("(connected)") == 1


def test_a_producer_waits_for_its_node_without_using_up_retries(
    channels: FakeChannels, runtime: SimRuntime
) -> None:
    """A batch that was never sent has not failed."""
    from embedlog.client.settings import PRODUCER

    network = NetworkClient(
        [("first", 1)],
        {**parse(PRODUCER), **parse(COMMON), "max.in.flight.requests.per.connection": 5},
        runtime=runtime,
        channels=channels,
    )
    channels.refuses.add(("localhost", 9092))
    with Producer(network, linger_ms=0, retries=1) as producer:
        future = producer.send("one", b"v")
        with pytest.raises(TimedOut):
            future.result(5)
        assert len(channels.attempts) > 5
        assert producer.metrics()["record-retry-total"] == 0
        channels.refuses.clear()
        assert future.result().offset == 0
    assert runtime.clock.monotonic_ms() < 7_000


def test_sending_alone_keeps_the_connection_busy() -> None:
    """Without a thread and without a flush, each send also takes the answers that arrived."""
    import embedlog

    with embedlog.open(num_partitions=1) as cluster:
        producer = Producer(LoopbackTransport(cluster), linger_ms=0, batch_size=0)
        futures = [producer.send("busy", b"%d" % number) for number in range(50)]
        assert sum(future.batch.is_done for future in futures) >= 40
        producer.close()


def test_a_producer_lives_through_cut_connections() -> None:
    """Every acknowledged record is there once, in order, although connections break all
    the time."""
    import embedlog

    with embedlog.open(num_partitions=1) as cluster:
        transport = LoopbackTransport(cluster)
        with Producer(
            transport, linger_ms=0, enable_idempotence=True, retry_backoff_ms=1
        ) as producer:
            futures = []
            for number in range(60):
                futures.append(producer.send("cut", b"%d" % number))
                if number % 7 == 3:
                    transport.channels.cut()
            producer.flush(30)
            assert [future.result().offset for future in futures[:1]] == [0]
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("cut", 0)])
            values = [record.value for record in consumer.poll(1000)]
    assert values == [b"%d" % number for number in range(60)]
