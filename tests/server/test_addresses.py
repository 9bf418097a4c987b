"""The server's side of the network: answers, closed connections, late answers, bad input."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.broker.context import RequestContext
from embedlog.broker.parked_fetches import ParkedFetches
from embedlog.config import BrokerConfig
from embedlog.errors import ConfigError, error_for
from embedlog.runtime.pending import Pending
from embedlog.server.addresses import BrokerListener, limits_from, listen
from embedlog.server.advertising import address_of
from embedlog.server.service import BrokerService
from embedlog.testing import sim_runtime
from tests.server.wire_client import (
    WireClient,
    api_versions_frame,
    fetch,
    fetched_values,
    frame,
    header,
    produce,
)
from wire import decode, encode
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.schemas.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_KEY = 200
BROKER_TO_BROKER_KEY = 4


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        yield cluster


@pytest.fixture
def listener(cluster: embedlog.Cluster) -> BrokerListener:
    return cluster.listen()


@pytest.fixture
def client(listener: BrokerListener) -> Iterator[WireClient]:
    with WireClient((listener.host, listener.port)) as client:
        yield client


def another(listener: BrokerListener) -> WireClient:
    return WireClient((listener.host, listener.port))


@pytest.mark.parametrize("version", range(6))
def test_api_versions_is_answered_at_every_version(client: WireClient, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = client.ask(request, version)
    assert response.error_code == 0
    listed = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert listed[ApiKey.API_VERSIONS] == (0, 5)
    assert listed[ApiKey.PRODUCE][0] == 0, "librdkafka depends on it"


@pytest.mark.parametrize("version", [6, 99, 32767, -1, -32768])
def test_an_unknown_version_of_api_versions_is_answered_as_version_0(
    client: WireClient, version: int
) -> None:
    client.send_bytes(api_versions_frame(version, 77))
    answer = client.receive_frame()
    assert answer[:4] == (77).to_bytes(4, "big")
    response = decode(ApiVersionsResponse, 0, answer, 4)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    (api,) = response.api_keys
    assert (api.api_key, api.min_version, api.max_version) == (ApiKey.API_VERSIONS, 0, 5)
    assert client.versions().error_code == 0, "the connection goes on"


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.METADATA, 99),
        (ApiKey.METADATA, -1),
        (ApiKey.FETCH, 19),
        (UNKNOWN_KEY, 0),
        (-1, 0),
        (BROKER_TO_BROKER_KEY, 0),
    ],
)
def test_a_version_or_api_that_is_not_served_closes_the_connection(
    client: WireClient, listener: BrokerListener, key: int, version: int
) -> None:
    client.send_bytes(api_versions_frame(0, 1) + frame(header(key, version, 2) + bytes(50)))
    client.receive_frame()
    assert client.is_closed()
    with another(listener) as other:
        assert other.versions().error_code == 0


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0",
        header(ApiKey.METADATA, 1, 1)[:-1],
        header(ApiKey.METADATA, 1, 1),
        header(ApiKey.METADATA, 1, 1) + b"\0\0",
        header(ApiKey.METADATA, 1, 1) + (2_000_000_000).to_bytes(4, "big"),
        header(ApiKey.METADATA, 1, 1) + b"\0\0\0\1\xff\xff",
    ],
    ids=["empty", "one byte", "cut header", "no body", "cut count", "huge count", "null name"],
)
def test_what_is_no_request_closes_the_connection(client: WireClient, payload: bytes) -> None:
    client.send_bytes(frame(payload))
    assert client.is_closed()


def test_bytes_behind_a_request_are_tolerated(client: WireClient) -> None:
    client.send_bytes(frame(header(ApiKey.METADATA, 1, 9) + b"\0\0\0\0" + b"trailing"))
    assert client.receive_frame()[:4] == (9).to_bytes(4, "big")


def test_a_null_client_id_and_one_that_is_not_utf8_are_tolerated(listener: BrokerListener) -> None:
    with WireClient((listener.host, listener.port), client_id=None) as client:
        assert client.versions().error_code == 0
        client.send_bytes(frame(header(ApiKey.API_VERSIONS, 0, 5, b"\xff\xfe")))
        assert client.receive_frame()[:4] == (5).to_bytes(4, "big")


def test_pipelined_requests_are_answered_in_order(client: WireClient) -> None:
    for number in range(100):
        client.send(produce("events", b"%d" % number), 7)
        client.send(fetch("events", number), 11)
        client.send(ApiVersionsRequest(), 0)
    for number in range(100):
        assert client.receive().responses[0].partition_responses[0].base_offset == number
        assert fetched_values(client.receive()) == [b"%d" % number]
        assert client.receive().error_code == 0


def test_a_waiting_fetch_is_answered_by_a_produce_of_another_connection(
    client: WireClient, listener: BrokerListener
) -> None:
    client.send(fetch("events", 0, wait_ms=60_000), 11)
    with another(listener) as other:
        assert other.ask(produce("events", b"here"), 7) is not None
    assert fetched_values(client.receive()) == [b"here"]


def test_a_waiting_fetch_is_answered_by_a_producer_of_this_process(
    cluster: embedlog.Cluster, client: WireClient, listener: BrokerListener
) -> None:
    for number in range(20):
        client.send(fetch("events", number, wait_ms=60_000), 11)
        with another(listener) as other:
            other.versions()
        context = RequestContext(ApiKey.PRODUCE, 7)
        answer = cluster.broker().core.handle(context, produce("events", b"%d" % number))
        assert not isinstance(answer, Pending) or answer.done()
        assert fetched_values(client.receive()) == [b"%d" % number]


def test_a_waiting_fetch_is_answered_empty_when_its_time_is_over(client: WireClient) -> None:
    assert fetched_values(client.ask(fetch("events", 0, wait_ms=20), 11)) == []


def test_a_client_that_leaves_takes_its_waiting_fetch_along(
    cluster: embedlog.Cluster, listener: BrokerListener
) -> None:
    purgatory = cluster.broker().core.replica_manager.fetch_purgatory
    leaving, staying = another(listener), another(listener)
    assert purgatory.delayed == 0
    leaving.send(fetch("events", 0, wait_ms=60_000), 11)
    leaving.sock.shutdown(socket.SHUT_WR)
    assert leaving.is_closed()
    staying.versions()
    assert purgatory.delayed == 0
    staying.close()


def test_a_produce_without_acks_has_no_answer(client: WireClient) -> None:
    client.send(produce("events", b"quiet", acks=0), 7, expect_response=False)
    assert fetched_values(client.ask(fetch("events", 0), 11)) == [b"quiet"]


def test_a_failed_produce_without_acks_closes_the_connection(client: WireClient) -> None:
    client.send(produce("no-such-topic", b"lost", acks=0), 7, expect_response=False)
    assert client.is_closed()


def test_large_batches_and_answers_pass_through(client: WireClient) -> None:
    values = [random.Random(number).randbytes(300_000) for number in range(3)]
    for value in values:
        answer = client.ask(produce("events", value), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    for offset, value in enumerate(values):
        assert fetched_values(client.ask(fetch("events", offset), 11))[:1] == [value]


def test_clients_are_told_the_address_they_came_by(
    client: WireClient, listener: BrokerListener, cluster: embedlog.Cluster
) -> None:
    answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="events")]), 9)
    assert [(node.host, node.port) for node in answer.brokers] == [(listener.host, listener.port)]
    assert cluster.broker().core.endpoints == [("PLAINTEXT", listener.host, listener.port)]
    listener.close()
    assert cluster.broker().core.endpoints == []


def test_clients_are_told_the_advertised_address_where_one_is_set() -> None:
    settings = {"advertised.listeners": "PLAINTEXT://kafka.example:19092"}
    with embedlog.open(config=settings) as cluster:
        listener = cluster.listen()
        assert cluster.broker().core.endpoints == [("PLAINTEXT", "kafka.example", 19092)]
        with another(listener) as client:
            answer = client.ask(MetadataRequest(topics=[]), 9)
            assert [(n.host, n.port) for n in answer.brokers] == [("kafka.example", 19092)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PLAINTEXT://host:1", [("host", 1), ("host", 2), ("host", 3)]),
        ("PLAINTEXT://[::1]:9092", [("::1", 9092), ("::1", 9093), ("::1", 9094)]),
        ("PLAINTEXT://:9092", [("", 9092), ("", 9093), ("", 9094)]),
        ("PLAINTEXT://host:0", [("host", 0)] * 3),
        ("PLAINTEXT://host:1,CONTROLLER://host:2", [("host", 1), ("host", 2), ("host", 3)]),
        ("PLAINTEXT://kafka-{id}:9092", [(f"kafka-{id}", 9092) for id in (7, 8, 9)]),
        ("PLAINTEXT://localhost:1909{id}", [("localhost", 19090 + id) for id in (7, 8, 9)]),
    ],
)
def test_each_broker_has_an_address_of_its_own_in_a_setting(
    text: str, expected: list[tuple[str, int]]
) -> None:
    config = BrokerConfig({"advertised.listeners": text})
    found = [address_of(config.of_node(7 + n), "advertised.listeners", n) for n in range(3)]
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "host:1",
        "SSL://host:1",
        "PLAINTEXT://host",
        "PLAINTEXT://host:{name}",
        "CONTROLLER://:1",
        "A://b:1,C://d:2",
        "PLAINTEXT://host:65535",
        "PLAINTEXT://host:9092{id}",
    ],
)
def test_an_advertised_address_that_cannot_be_used_is_an_error(text: str) -> None:
    config = BrokerConfig({"advertised.listeners": text, "node.id": 2})
    with pytest.raises(ConfigError, match="advertised.listeners"):
        address_of(config, "advertised.listeners", 1)


@pytest.mark.parametrize(
    ("host", "told"), [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1")]
)
def test_a_name_is_advertised_as_it_is_written(host: str, told: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    for settings, arguments in (
        ({"listeners": f"PLAINTEXT://{shown}:0"}, ()),
        ({}, (host,)),
    ):
        with embedlog.open(config=settings) as cluster:
            listener = cluster.listen(*arguments)
            assert cluster.broker().core.endpoints == [("PLAINTEXT", told, listener.port)]
            with another(listener) as client:
                (node,) = client.ask(MetadataRequest(topics=[]), 9).brokers
                assert (node.host, node.port) == (told, listener.port)


def test_limits_are_ours_until_a_setting_says_otherwise() -> None:
    limits = limits_from(BrokerConfig())
    assert (limits.connection_count_max, limits.request_size_max) == (1_000, 104_857_600)
    assert not limits.limit_loopback
    limits = limits_from(
        BrokerConfig(
            {
                "max.connections": 5,
                "max.connections.per.ip": 2,
                "socket.request.max.bytes": 3_000_000,
                "connections.max.idle.ms": 1_000,
                "queued.max.request.bytes": -1,
            }
        )
    )
    assert (limits.connection_count_max, limits.address_connection_count_max) == (5, 2)
    assert limits.limit_loopback
    assert limits.request_size_max == 3_000_000
    assert (limits.idle_ms, limits.receive_size_max) == (1_000, 128 * 1024 * 1024)


def test_an_address_other_machines_can_reach_has_to_be_allowed(cluster: embedlog.Cluster) -> None:
    with pytest.raises(ConfigError, match="allow_remote_plaintext"):
        cluster.listen("0.0.0.0")
    listener = cluster.listen("0.0.0.0", allow_remote_plaintext=True)
    with WireClient(("127.0.0.1", listener.port)) as client:
        answer = client.ask(MetadataRequest(topics=[]), 9)
        assert [node.host for node in answer.brokers] == ["127.0.0.1"]


def test_a_closed_listener_frees_its_port_and_may_be_closed_again(
    cluster: embedlog.Cluster, listener: BrokerListener
) -> None:
    with another(listener) as client:
        client.versions()
        listener.close()
        listener.close()
        assert client.is_closed()
    with another(cluster.listen(port=listener.port)) as client:
        client.versions()


class StubBroker:
    """Answers with `answer`, which a test sets, and keeps the requests."""

    def __init__(self) -> None:
        self.answer: Any = FindCoordinatorResponse(error_message="fine")
        self.config = BrokerConfig()
        self.parked = ParkedFetches(sim_runtime())
        self.contexts: list[tuple[str, str]] = []

    def handle(self, context: RequestContext, request: Any) -> Any:
        self.contexts.append((context.client_software_name, context.client_software_version))
        return self.answer


class StubConnection:
    peer_host = "127.0.0.1"
    local_host = "127.0.0.1"
    local_port = 9092

    def __init__(self) -> None:
        self.state: Any = None
        self.is_closed = False
        self.answers: list[Callable[[], Any]] = []

    def close(self) -> None:
        self.is_closed = True

    def respond_with(self, make: Callable[[], Any]) -> None:
        self.answers.append(make)


class Adapter:
    """A service between stubs."""

    def __init__(self) -> None:
        self.broker = StubBroker()
        self.connection = StubConnection()
        self.service = BrokerService(self.broker)  # type: ignore[arg-type]
        self.service.connected(self.connection)  # type: ignore[arg-type]

    def handle(self, request: Any, version: int, key: int = ApiKey.FIND_COORDINATOR) -> Any:
        payload = header(key, version, 5) + encode(request, version)
        return self.service.handle(self.connection, memoryview(payload))  # type: ignore[arg-type]

    def find_coordinator(self) -> Any:
        return self.handle(FindCoordinatorRequest(key="group"), 1)


def test_an_answer_that_is_there_already_is_not_waited_for() -> None:
    adapter = Adapter()
    direct = adapter.find_coordinator()
    pending: Pending[Any] = Pending()
    pending.complete(adapter.broker.answer)
    adapter.broker.answer = pending
    assert adapter.find_coordinator() == direct
    assert adapter.connection.answers == []


def test_a_late_answer_is_encoded_when_the_listener_asks_for_it() -> None:
    adapter = Adapter()
    direct, answer = adapter.find_coordinator(), adapter.broker.answer
    pending: Pending[Any] = Pending()
    adapter.broker.answer = pending
    assert adapter.find_coordinator() is None
    thread = threading.Thread(target=pending.complete, args=(answer,))
    thread.start()
    thread.join()
    (make,) = adapter.connection.answers
    assert make() == direct


def test_a_late_error_becomes_the_answers_error_code() -> None:
    adapter = Adapter()
    pending: Pending[Any] = Pending()
    adapter.broker.answer = pending
    assert adapter.find_coordinator() is None
    pending.fail(error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    (make,) = adapter.connection.answers
    (data,) = make()
    response = decode(FindCoordinatorResponse, 1, data, 8)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_late_none_lets_the_connection_go_on_without_an_answer() -> None:
    adapter = Adapter()
    pending: Pending[Any] = Pending()
    adapter.broker.answer = pending
    assert adapter.find_coordinator() is None
    pending.complete(None)
    (make,) = adapter.connection.answers
    assert list(make()) == []
    assert not adapter.connection.is_closed


def test_a_defect_costs_its_connection_only(
    cluster: embedlog.Cluster,
    client: WireClient,
    listener: BrokerListener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An answer without an encoding, at once and late, stands for any defect."""
    invalid = FindCoordinatorResponse(error_code=1 << 40)
    pending: Pending[Any] = Pending()
    answers = iter([invalid, pending])
    handle = cluster.broker().core.handle

    def answer(context: RequestContext, request: Any) -> Any:
        is_tested = context.api_key == ApiKey.FIND_COORDINATOR
        return next(answers) if is_tested else handle(context, request)

    monkeypatch.setattr(cluster.broker().core, "handle", answer)
    with another(listener) as bystander:
        client.send(FindCoordinatorRequest(key="group"), 1)
        assert client.is_closed()
        with another(listener) as late:
            late.send(FindCoordinatorRequest(key="group"), 1)
            bystander.versions()
            pending.complete(invalid)
            assert late.is_closed()
        assert bystander.versions().error_code == 0
    assert [record.name for record in caplog.records] == ["embedlog.listener", "embedlog.listener"]


def test_a_clients_software_is_remembered_for_its_later_requests() -> None:
    adapter = Adapter()
    adapter.broker.answer = ApiVersionsResponse()
    payload = (
        header(ApiKey.API_VERSIONS, 3, 1)
        + b"\0"
        + encode(ApiVersionsRequest(client_software_name="app", client_software_version="2.1"), 3)
    )
    assert adapter.service.handle(adapter.connection, memoryview(payload))  # type: ignore[arg-type]
    adapter.broker.answer = FindCoordinatorResponse()
    adapter.find_coordinator()
    assert adapter.broker.contexts == [("", ""), ("app", "2.1")]


@pytest.mark.parametrize(("version", "code"), [(2, 0), (3, ErrorCode.INVALID_REQUEST)])
def test_software_that_was_not_named_or_was_refused_is_not_remembered(
    version: int, code: int
) -> None:
    adapter = Adapter()
    context = adapter.connection.state
    context.client_software_name = context.client_software_version = "before"
    adapter.broker.answer = ApiVersionsResponse(error_code=code)
    named = encode(ApiVersionsRequest(client_software_name="!", client_software_version="1"), 3)
    payload = header(ApiKey.API_VERSIONS, version, 1) + (b"\0" + named if version == 3 else b"")
    assert adapter.service.handle(adapter.connection, memoryview(payload))  # type: ignore[arg-type]
    assert (context.client_software_name, context.client_software_version) == ("before",) * 2


def test_a_new_answer_to_api_versions_replaces_the_known_one() -> None:
    adapter = Adapter()
    epochs = []
    for epoch in (1, 2, 2):
        adapter.broker.answer = ApiVersionsResponse(finalized_features_epoch=epoch)
        payload = header(ApiKey.API_VERSIONS, 3, 1) + b"\0" + encode(ApiVersionsRequest(), 3)
        (data,) = adapter.service.handle(adapter.connection, payload)  # type: ignore
        epochs.append(decode(ApiVersionsResponse, 3, data, 8).finalized_features_epoch)
    assert epochs == [1, 2, 2]


def test_a_closed_address_drives_nothing_any_more(cluster: embedlog.Cluster) -> None:
    scheduler = cluster.broker().core.runtime.scheduler
    listener = cluster.listen()
    assert scheduler.is_watched
    listener.close()
    assert not scheduler.is_watched


@pytest.mark.slow
def test_random_bytes_never_hurt_the_server(listener: BrokerListener) -> None:
    """Frames of noise, real headers followed by noise, and damaged real requests."""
    rng = random.Random(20)
    real = [
        header(ApiKey.METADATA, 1, 1) + b"\0\0\0\1\0\6events",
        header(ApiKey.PRODUCE, 7, 1) + encode(produce("events", b"v" * 50), 7),
        header(ApiKey.FETCH, 11, 1) + encode(fetch("events", 0), 11),
    ]
    for _ in range(300):
        kind = rng.randrange(4)
        if kind == 0:
            data = rng.randbytes(rng.randrange(1, 300))
        elif kind == 1:
            data = frame(rng.randbytes(rng.randrange(0, 300)))
        elif kind == 2:
            key, version = rng.randrange(95), rng.randrange(19)
            data = frame(header(key, version, 1) + rng.randbytes(rng.randrange(0, 200)))
        else:
            damaged = bytearray(rng.choice(real))
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(4, len(damaged))] = rng.randrange(256)
            data = frame(bytes(damaged[: rng.randrange(8, len(damaged) + 1)]))
        with another(listener) as attacker:
            attacker.send_bytes(data)
            attacker.sock.shutdown(socket.SHUT_WR)
            _read_to_the_end(attacker.sock)
    with another(listener) as client:
        answer = client.ask(produce("events", b"still here"), 7)
        (partition,) = answer.responses[0].partition_responses
        assert partition.error_code == 0
        values = fetched_values(client.ask(fetch("events", partition.base_offset), 11))
        assert values == [b"still here"]


def _read_to_the_end(sock: socket.socket) -> None:
    try:
        while sock.recv(65_536):
            pass
    except ConnectionError:
        return


def test_an_advertised_port_without_a_host_goes_with_the_host_of_each_client() -> None:
    with (
        embedlog.open(advertised_listeners="PLAINTEXT://:19092") as cluster,
        embedlog.Admin(cluster.listen().address, retries=0) as admin,
    ):
        (node,) = admin.describe_cluster().nodes.values()
        assert (node.host, node.port) == ("127.0.0.1", 19092)


@pytest.mark.parametrize(("is_allowed", "host"), [(False, "127.0.0.1"), (True, "0.0.0.0")])
def test_listeners_without_a_host_means_loopback_unless_others_are_allowed(
    is_allowed: bool, host: str
) -> None:
    settings = {"listeners": "PLAINTEXT://:0,CONTROLLER://:9093"}
    with embedlog.open(config=settings) as cluster:
        listener = cluster.listen(allow_remote_plaintext=is_allowed)
        assert listener.host == host
        with embedlog.Producer(f"127.0.0.1:{listener.port}") as producer:
            assert producer.send("events", b"v").result(10).offset == 0
        # The setting is for the first listener; another one finds a free port.
        assert cluster.listen().port not in (0, listener.port)


def test_what_is_said_of_an_address_in_use_names_the_address() -> None:
    with embedlog.open() as cluster:
        port = cluster.listen().port
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            cluster.listen(port=port)


class Gone:
    """The door of a broker that has just stopped."""

    def handle(self, _context: RequestContext, _request: Any) -> Any:
        broken: Pending[Any] = Pending()
        broken.fail(errors.Network("broker 1 does not run"))
        return broken


def test_a_broker_that_is_gone_answers_nothing() -> None:
    """A producer takes a network error in an answer for the outcome of its batch; after a broken
    connection it sends the batch again.
    """
    with embedlog.open() as cluster:
        listener = listen(cluster.broker().core, "127.0.0.1", 0, door=Gone())
        listener.start()
        with WireClient(("127.0.0.1", listener.port)) as client:
            client.send(produce("t", b"a"), 9)
            assert client.is_closed()
        listener.close()
