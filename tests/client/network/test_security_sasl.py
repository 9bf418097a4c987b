"""SASL before the first request: accepted and refused clients, and authenticating again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog import Admin, Cluster, Consumer, Producer, errors
from embedlog.client.network.network_client import NetworkClient
from embedlog.client.network.security_jaas import parse_jaas
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.errors import ClosedError, ConfigError, KafkaError, TimedOut
from embedlog.testing import sim_runtime
from tests.client.sasl_gate import WRONG, GatedChannels, SaslGate, ScramServer
from tests.client.secure_proxy import Authority, secured_cluster
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.metadata import MetadataRequest

USERS = {"alice": "secret", "b=o,b": 'sp ace; "é'}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
MODULE = "org.apache.kafka.common.security"


def logging_in(mechanism: str, user: str = "alice", password: str = "secret") -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


class Gated:
    """A cluster of simulated time behind gates, and transports to it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clock: Any = cluster.runtime.clock
        self.gate: dict[str, Any] = {"users": USERS, "mechanisms": MECHANISMS}
        self.channels = GatedChannels(cluster, lambda: SaslGate(**self.gate))

    def transport(self, settings: dict[str, Any]) -> NetworkClient:
        return NetworkClient(
            [("loopback", 9092)],
            parse(COMMON, settings),
            runtime=self.cluster.runtime,
            channels=self.channels,
        )

    def admin(self, settings: dict[str, Any]) -> Admin:
        return Admin(self.transport(settings))

    def lock_out(self) -> None:
        """Close every connection, and let no client in again."""
        self.gate["users"] = {}
        for end in self.channels.gates:
            end.close()

    def refused(self, settings: dict[str, Any]) -> KafkaError:
        """Return the error of a call, which comes at once, and again at the next call."""
        with self.admin(settings) as admin:
            told = []
            for _ in range(3):
                with pytest.raises(KafkaError) as raised:
                    admin.list_topics()
                told.append(raised.value)
            assert len({(type(each), str(each)) for each in told}) == 1
            assert self.clock.monotonic_ms() < 10_000
        assert not told[0].retriable
        assert "loopback:9092" in str(told[0])
        return told[0]


@pytest.fixture
def gated() -> Iterator[Gated]:
    with Cluster(runtime=sim_runtime()) as cluster:
        yield Gated(cluster)


@pytest.fixture
def real_gated() -> Iterator[Gated]:
    """In real time, as a producer over a network has a thread."""
    with Cluster() as cluster:
        yield Gated(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_gets_in(real_gated: Gated, mechanism: str, user: str) -> None:
    settings = logging_in(mechanism, user, USERS[user])
    with Producer(real_gated.transport(settings)) as producer:
        assert producer.send("events", b"v").result(10).offset == 0
    with Consumer(real_gated.transport(settings)) as consumer:
        consumer.assign([("events", 0)])
        consumer.seek_to_beginning()
        assert [record.value for record in consumer.poll(1_000)] == [b"v"]
    assert all(gate.authentications == 1 for gate in real_gated.channels.gates.values())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "secret")])
def test_a_stranger_is_told_so_at_once(
    gated: Gated, mechanism: str, user: str, password: str
) -> None:
    told = gated.refused(logging_in(mechanism, user, password))
    assert isinstance(told, errors.SaslAuthenticationFailed)
    assert str(told) == f"loopback:9092: {WRONG}"


def test_producers_and_consumers_are_told_too(real_gated: Gated) -> None:
    settings = logging_in("PLAIN", password="wrong")
    with Producer(real_gated.transport(settings)) as producer:
        for _ in range(2):
            error = producer.send("events", b"v").exception(10)
            assert isinstance(error, errors.SaslAuthenticationFailed)
    with Consumer(real_gated.transport(settings)) as consumer:
        consumer.assign([("events", 0)])
        for _ in range(2):
            with pytest.raises(errors.SaslAuthenticationFailed):
                consumer.poll(1_000)
    with (
        pytest.raises(errors.SaslAuthenticationFailed),
        Consumer(real_gated.transport(settings), group_id="g") as consumer,
    ):
        consumer.subscribe(["events"])
        consumer.poll(1_000)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_close_does_not_repeat_what_poll_said(gated: Gated, protocol: str) -> None:
    settings = logging_in("PLAIN", password="wrong")
    consumer = Consumer(gated.transport(settings), group_id="g", group_protocol=protocol)
    consumer.subscribe(["events"])
    with pytest.raises(errors.SaslAuthenticationFailed):
        consumer.poll(1_000)
    consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


@pytest.mark.parametrize("is_told", [True, False])
def test_a_commit_that_close_cannot_make_is_told_once(gated: Gated, is_told: bool) -> None:
    """The user is locked out between reading and closing."""
    settings = logging_in("PLAIN")
    with gated.admin(settings) as admin:
        admin.create_topics({"events": 1}).check()
    consumer = Consumer(gated.transport(settings), group_id="g")
    consumer.assign([("events", 0)])
    consumer.seek(("events", 0), 0)
    consumer.poll(100)
    gated.lock_out()
    if is_told:
        with pytest.raises(errors.SaslAuthenticationFailed):
            consumer.poll(10_000)
        consumer.close()
    else:
        with pytest.raises(errors.SaslAuthenticationFailed):
            consumer.close()
    with pytest.raises(ClosedError):
        consumer.poll()


def test_a_refused_client_gets_in_once_it_may(gated: Gated) -> None:
    settings = logging_in("SCRAM-SHA-256", "carol", "new")
    with gated.admin(settings) as admin:
        with pytest.raises(errors.SaslAuthenticationFailed):
            admin.list_topics()
        gated.gate["users"] = {"carol": "new"}
        assert admin.list_topics() == {}


def test_a_mechanism_that_is_not_offered(gated: Gated) -> None:
    gated.gate["mechanisms"] = ["SCRAM-SHA-512", "OAUTHBEARER"]
    told = gated.refused(logging_in("PLAIN"))
    assert isinstance(told, errors.UnsupportedSaslMechanism)
    assert "the broker takes SCRAM-SHA-512, OAUTHBEARER, not PLAIN" in str(told)


def test_a_listener_without_sasl(gated: Gated) -> None:
    gated.gate["mechanisms"] = []
    told = gated.refused(logging_in("PLAIN"))
    assert isinstance(told, errors.IllegalSaslState)
    assert "this listener of the broker is without SASL" in str(told)


def test_a_client_without_sasl_is_hung_up_on(gated: Gated) -> None:
    with gated.admin({}) as admin, pytest.raises(TimedOut, match="does the listener want SASL"):
        admin.list_topics(timeout_ms=5_000)


def test_a_server_that_does_not_know_the_password_is_not_trusted(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScramServer, "verify", lambda self, final: b"v=" + b"AAAA" * 8)
    told = gated.refused(logging_in("SCRAM-SHA-256"))
    assert isinstance(told, errors.SaslAuthenticationFailed)
    assert "the server does not know the password either" in str(told)


def test_a_server_that_is_silent_is_given_up(gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SaslGate, "step", lambda self, head: (_ for _ in ()).throw(Silence))
    monkeypatch.setattr(GatedChannels, "serve", silently(GatedChannels.serve))
    with (
        gated.admin({**logging_in("PLAIN"), "request.timeout.ms": 2_000}) as admin,
        pytest.raises(TimedOut, match="the last error was"),
    ):
        admin.list_topics(timeout_ms=10_000)


class Silence(Exception):
    """The server keeps an answer to itself."""


def silently(serve: Callable[..., Any]) -> Callable[..., Any]:
    def served(self: Any, end: Any, frame: memoryview) -> Any:
        try:
            return serve(self, end, frame)
        except Silence:
            return None

    return served


def test_a_session_is_renewed_before_it_ends(gated: Gated) -> None:
    gated.gate |= {"lifetime_ms": 60_000, "clock": gated.clock.monotonic_ms}
    with gated.admin(logging_in("SCRAM-SHA-512")) as admin:
        started = gated.clock.monotonic_ms()
        while gated.clock.monotonic_ms() - started < 300_000:
            admin.describe_cluster()
            gated.clock.advance(1_000)
        (gate,) = gated.channels.gates.values()
    # Each time between 85 and 95 percent of the session.
    assert 300 // 58 <= gate.authentications <= 300 // 51 + 1


def test_a_session_that_ended_meanwhile_is_renewed_first(gated: Gated) -> None:
    gated.gate |= {"lifetime_ms": 60_000, "clock": gated.clock.monotonic_ms}
    transport = gated.transport(logging_in("PLAIN"))
    with Admin(transport) as admin:
        admin.describe_cluster()
        gated.clock.advance(400_000)
        sent = [transport.send(-1, MetadataRequest(topics=[])) for _ in range(3)]
        for each in sent:
            transport.wait(each, 1_000)
        assert [each.result().error_code for each in sent] == [0, 0, 0]
        (gate,) = gated.channels.gates.values()
        assert gate.authentications == 2


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_over_tls(mechanism: str) -> None:
    authority = Authority()
    context = authority.server_context("localhost")
    settings = {
        **logging_in(mechanism),
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": authority.pem,
    }
    with secured_cluster(context, lambda: SaslGate(USERS, MECHANISMS)) as proxy:
        with Producer(proxy.address, settings) as producer:
            sent = [producer.send("events", b"%d" % number) for number in range(100)]
            assert [each.result(20).offset for each in sent] == list(range(100))
        with (
            Admin(proxy.address, {**settings, "sasl.password": "wrong"}) as admin,
            pytest.raises(errors.SaslAuthenticationFailed, match=f"{proxy.address}: {WRONG}"),
        ):
            admin.list_topics(timeout_ms=20_000)


def test_a_jaas_line_names_user_and_password(gated: Gated) -> None:
    for mechanism, module in [
        ("PLAIN", f"{MODULE}.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", f"{MODULE}.scram.ScramLoginModule"),
    ]:
        settings = {
            "security_protocol": "sasl_plaintext",
            "sasl_mechanism": mechanism,
            "sasl_jaas_config": f'{module} required username="alice" password="secret";',
        }
        with gated.admin(settings) as admin:
            assert admin.list_topics() == {}


def test_names_of_other_clients_are_understood(gated: Gated) -> None:
    for settings in (
        {"sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"},
        {
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "secret",
        },
    ):
        with gated.admin({"security.protocol": "SASL_PLAINTEXT", **settings}) as admin:
            assert admin.list_topics() == {}


@pytest.mark.parametrize(
    ("line", "module", "options"),
    [
        ("M required a=b;", "M", {"a": "b"}),
        ('x.y.M Required a=\'b c\'\n\td="e;f=\\"g\\\\" ;', "M", {"a": "b c", "d": 'e;f="g\\'}),
        ("M /* no */ optional // this\n a=b // c=d\n;", "M", {"a": "b"}),
        ("M required a=\"'\" b='\"';", "M", {"a": "'", "b": '"'}),
        ('M required a="";', "M", {"a": ""}),
        ('M required a="=" b=";";', "M", {"a": "=", "b": ";"}),
        ("M required;", "M", {}),
    ],
)
def test_jaas_lines(line: str, module: str, options: dict[str, str]) -> None:
    assert parse_jaas(line) == (module, options)


@pytest.mark.parametrize(
    "line",
    [
        "", ";", "M;", "M required a=pass", "M needed a=pass;", "M required a;", "M required a=;",
        "M required =pass;", 'M required a="pass;', "M required a=pass b;", "M required a==pass;",
        "M required a=1 a=pass;", "M required a=pass; N required;", "/* M required;",
    ],
)  # fmt: skip
def test_lines_that_are_no_jaas_lines(line: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.jaas\.config") as raised:
        parse_jaas(line)
    assert "pass" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "needs sasl.mechanism"),
        ({"sasl.mechanism": "GSSAPI"}, "must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.mechanism": "PLAIN", "sasl.username": "alice"}, "needs a user and a password"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "ScramLoginModule required;"},
            "ScramLoginModule is not for sasl.mechanism=PLAIN",
        ),
    ],
)
def test_wrong_settings_are_refused_at_construction(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Admin("localhost:1", {"security.protocol": "SASL_SSL", **settings})


def test_a_session_is_not_renewed_before_the_answers_that_are_under_way(gated: Gated) -> None:
    gated.cluster.create_topic("events")
    gated.gate |= {"lifetime_ms": 60_000, "clock": gated.clock.monotonic_ms}
    transport = gated.transport(logging_in("PLAIN"))
    first = transport.send(-1, MetadataRequest(topics=[]))
    while not first.done():
        transport.wait(first, 100)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
    topic = FetchTopic(topic="events", partitions=[partition])
    request = FetchRequest(max_wait_ms=59_000, min_bytes=1, topics=[topic])
    fetch = transport.send(-1, request, version=12, timeout_ms=100_000)
    transport.wait(fetch, 100)
    gated.clock.advance(58_000 - gated.clock.monotonic_ms())
    after = transport.send(-1, MetadataRequest(topics=[]), timeout_ms=100_000)
    transport.wait(after, 100)
    (gate,) = gated.channels.gates.values()
    assert (gate.authentications, fetch.done(), after.done()) == (1, False, False)
    while not after.done():
        gated.cluster.runtime.scheduler.run_for(100)
        transport.wait(after, 100)
    assert fetch.result().error_code == after.result().error_code == 0
    assert gate.authentications == 2
    transport.close()
