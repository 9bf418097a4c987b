"""Toxics on connections over sockets: each effect, its end, and the refusals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from embedlog.errors import ConfigError
from embedlog.testing import Kafka
from embedlog.testing.toxics.shaping import ToxicShaper
from embedlog.testing.toxics.toxic import Toxic
from tests.server.wire_client import WireClient
from wire.net.relay import END
from wire.schemas.metadata import MetadataRequest


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"t": 1}) as made:
        yield made


def _connected(kafka: Kafka) -> WireClient:
    host, _, port = kafka.bootstrap_servers.partition(",")[0].rpartition(":")
    return WireClient((host, int(port)))


def _took(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def test_latency_delays_each_direction(kafka: Kafka) -> None:
    with kafka.toxic(latency=0.05) as toxic, _connected(kafka) as client:
        assert _took(client.versions) >= 0.1
        assert toxic.connections == 1
        toxic.remove()
        client.versions()
    with kafka.toxic(latency=0.05, direction="to-client"), _connected(kafka) as client:
        assert _took(client.versions) >= 0.05


def test_present_connections_are_spared_unless_they_are_cut(kafka: Kafka) -> None:
    with _connected(kafka) as client:
        client.versions()  # the listener has accepted the connection
        with kafka.toxic(latency=30) as toxic:
            client.versions()
            assert toxic.connections == 0
    with _connected(kafka) as client:
        client.versions()
        kafka.toxic(latency=30, cut=True).remove()
        assert client.is_closed()


def test_a_limit_closes_the_connection_after_so_many_bytes(kafka: Kafka) -> None:
    with kafka.toxic(limit=10, direction="to-client"), _connected(kafka) as client:
        client.send(MetadataRequest(topics=None), 5)
        received = b""
        while more := client.sock.recv(100):
            received += more
        assert len(received) == 10


def test_a_reset_breaks_a_silent_connection(kafka: Kafka) -> None:
    with (
        kafka.toxic(reset_after=0.02),
        _connected(kafka) as client,
        pytest.raises(ConnectionResetError),
    ):
        client.sock.recv(1)


def test_a_hanging_connection_goes_on_afterwards(kafka: Kafka) -> None:
    toxic = kafka.toxic(hang=True)
    with _connected(kafka) as client:
        client.send(MetadataRequest(topics=None), 5)
        client.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.sock.recv(1)
        client.sock.settimeout(20)
        toxic.remove()
        assert client.receive().brokers


def test_slices_arrive_whole(kafka: Kafka) -> None:
    with kafka.toxic(slice=3), _connected(kafka) as client:
        assert len(client.versions().api_keys) > 40


def test_a_broker_that_starts_again_has_the_toxics_too() -> None:
    with Kafka(brokers=2) as kafka:
        address = kafka.bootstrap_servers
        with kafka.toxic(latency=0.02) as toxic:
            kafka.broker(1).stop()
            kafka.broker(1).start()
            host, _, port = address.partition(",")[0].rpartition(":")
            with WireClient((host, int(port))) as client:
                client.versions()
            assert toxic.connections == 1


def test_bandwidth_slices_and_limits_are_counted_exactly() -> None:
    toxic = _toxic(bandwidth=100, slice=40, slice_delay=0.0, limit=90)
    shaper = ToxicShaper(lambda: [toxic], 0.0)
    assert list(shaper.shape(b"x" * 50, 1.0)) == [(1.4, b"x" * 40), (1.5, b"x" * 10)]
    pieces = list(shaper.shape(b"y" * 50, 1.0))
    assert [piece for _, piece in pieces] == [b"y" * 40, b"", END] or pieces[-1][1] is END
    assert sum(len(piece) for _, piece in pieces[:-1]) == 40


def test_latencies_add_up_and_jitter_stays_within_its_range() -> None:
    first, second = _toxic(latency=1.0), _toxic(latency=2.0, jitter=0.5, seed=3)
    delays = [second.delay() for _ in range(200)]
    assert 1.5 <= min(delays) < 1.7 and 2.3 < max(delays) <= 2.5
    ((at, _),) = ToxicShaper(lambda: [first, second], 0.0).shape(b"x", 10.0)
    assert 12.5 <= at <= 13.5


def test_chance_is_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> list[bool]:
        toxic = _toxic(latency=1, chance=0.5, seed=seed)
        return [toxic.takes() for _ in range(100)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert 20 < sum(drawn(1)) < 80


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"latencyy": 1}, "did you mean 'latency'"),
        ({}, "does nothing"),
        ({"latency": -1}, "latency=-1"),
        ({"latency": 1, "jitter": 2}, "at most the latency"),
        ({"latency": 1, "chance": 2}, "expected 0 to 1"),
        ({"latency": 1, "direction": "to-brokers"}, "did you mean 'to-broker'"),
    ],
)
def test_what_a_toxic_cannot_be_is_refused(given: dict[str, object], text: str) -> None:
    with Kafka() as kafka, pytest.raises(ConfigError, match=text):
        kafka.toxic(**given)


def _toxic(**given: object) -> Toxic:
    return Toxic(lambda _new, _old: None, **given)  # type: ignore[arg-type]
