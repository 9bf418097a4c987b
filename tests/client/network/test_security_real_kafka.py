"""Our clients and a secured Apache Kafka: TLS with and without client certificates,
PLAIN, SCRAM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedlog import Admin, Consumer, Producer, errors
from embedlog.client.network.network_client import NetworkClient
from embedlog.client.network.security import SslHandshakeFailed
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.errors import TimedOut
from tests.client.secure_proxy import Authority
from tests.support.kafka import free_port, real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SESSION_MS = 4_000


class SecuredKafka:
    """Its addresses, by security protocol, and the authority that signed its certificate."""

    def __init__(self, authority: Authority, directory: Path) -> None:
        self.authority = authority
        self.ports = {name: free_port() for name in ("TLS", "MUTUAL", "SASLTLS", "SASLPLAIN")}
        chain, key = authority.issue("localhost")
        (directory / "keystore.pem").write_text(key + chain)
        (directory / "truststore.pem").write_text(authority.pem)
        self.listeners = {
            "TLS": ("SSL", self.ports["TLS"]),
            "MUTUAL": ("SSL", self.ports["MUTUAL"]),
            "SASLTLS": ("SASL_SSL", self.ports["SASLTLS"]),
            "SASLPLAIN": ("SASL_PLAINTEXT", self.ports["SASLPLAIN"]),
        }
        self.settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "keystore.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "truststore.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connections.max.reauth.ms": str(SESSION_MS),
        }
        for listener in ("sasltls", "saslplain"):
            users = 'user_alice="alice secret" user_bob="b;=ob"'
            name = f"listener.name.{listener}"
            self.settings[f"{name}.plain.sasl.jaas.config"] = f"{PLAIN} required {users};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                self.settings[f"{name}.{mechanism}.sasl.jaas.config"] = f"{SCRAM} required;"

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def trusted(self, **settings: Any) -> dict[str, Any]:
        return {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": self.authority.pem,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    made = SecuredKafka(Authority(), directory)
    users = {"alice": "alice secret"}
    with real_kafka(directory, settings=made.settings, listeners=made.listeners, scram_users=users):
        yield made


def logging_in(mechanism: str, user: str = "alice", password: str = "alice secret") -> Any:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{SCRAM if mechanism != 'PLAIN' else PLAIN} required "
        f'username="{user}" password="{password}";',
    }


def round_trip(address: str, settings: dict[str, Any]) -> None:
    values = [b"%d" % number * 100 for number in range(1_000)]
    with Producer(address, settings) as producer:
        first = producer.send("secure", b"first").result(30).offset
        producer.send_batch("secure", values).result(30)
    with Consumer(address, settings, group_id="readers") as consumer:
        consumer.assign([("secure", 0)])
        consumer.seek(("secure", 0), first + 1)
        found: list[Any] = []
        while len(found) < len(values):
            records = list(consumer.poll(10_000))
            assert records
            found += records
        assert [record.value for record in found] == values
        consumer.commit()
    with Admin(address, settings) as admin:
        (stored,) = admin.list_group_offsets(["readers"])["readers"].check().values()
        assert stored is not None
        assert stored.offset == first + 1 + len(values)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_kafka_is_reached_through_tls(kafka: SecuredKafka, version: str) -> None:
    round_trip(kafka.address("TLS"), kafka.trusted(ssl_enabled_protocols=version))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_kafka_knows_our_certificate(kafka: SecuredKafka, version: str) -> None:
    chain, key = kafka.authority.issue("alice.example", password="long word")
    settings = kafka.trusted(
        ssl_enabled_protocols=version,
        ssl_keystore_certificate_chain=chain,
        ssl_keystore_key=key,
        ssl_key_password="long word",
    )
    round_trip(kafka.address("MUTUAL"), settings)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("stranger", [False, True])
def test_kafka_refuses_who_shows_no_good_certificate(
    kafka: SecuredKafka, version: str, stranger: bool
) -> None:
    settings = kafka.trusted(ssl_enabled_protocols=version)
    if stranger:
        chain, key = Authority().issue("mallory.example")
        settings |= {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    with Admin(kafka.address("MUTUAL"), settings) as admin:
        with pytest.raises((SslHandshakeFailed, TimedOut), match="certificate") as raised:
            admin.list_topics(timeout_ms=5_000)
        if version == "TLSv1.2":
            assert isinstance(raised.value, SslHandshakeFailed)


def test_we_refuse_a_kafka_of_strangers(kafka: SecuredKafka) -> None:
    settings = kafka.trusted(ssl_truststore_certificates=Authority().pem)
    with (
        Admin(kafka.address("TLS"), settings) as admin,
        pytest.raises(SslHandshakeFailed, match="the certificate is not accepted"),
    ):
        admin.list_topics(timeout_ms=20_000)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_lets_us_in(kafka: SecuredKafka, mechanism: str) -> None:
    round_trip(kafka.address("SASLTLS"), kafka.trusted() | logging_in(mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_lets_us_in_without_tls(kafka: SecuredKafka, mechanism: str) -> None:
    settings = {**logging_in(mechanism), "security.protocol": "SASL_PLAINTEXT"}
    round_trip(kafka.address("SASLPLAIN"), settings)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_says_why_it_does_not(kafka: SecuredKafka, mechanism: str) -> None:
    for user, password in (("alice", "wrong"), ("mallory", "alice secret")):
        settings = kafka.trusted() | logging_in(mechanism, user, password)
        with (
            Admin(kafka.address("SASLTLS"), settings) as admin,
            pytest.raises(errors.SaslAuthenticationFailed, match="Authentication failed"),
        ):
            admin.list_topics(timeout_ms=20_000)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_session_is_renewed_while_records_flow(kafka: SecuredKafka, mechanism: str) -> None:
    """Kafka closes the connection of a session that ended: no record may notice."""
    settings = kafka.trusted() | logging_in(mechanism)
    network = NetworkClient([("localhost", kafka.ports["SASLTLS"])], parse(COMMON, settings))
    with Producer(network, retries=0) as producer:
        clock = network.runtime.clock  # the only one that counts here
        started = clock.monotonic_ms()
        count = 0
        while clock.monotonic_ms() - started < 2.5 * SESSION_MS:
            producer.send("secure", b"v").result(10)
            count += 1
        assert count > 10
        assert network.failure_count == 0


def test_a_listener_without_sasl(kafka: SecuredKafka) -> None:
    with (
        Admin(kafka.address("TLS"), kafka.trusted() | logging_in("PLAIN")) as admin,
        pytest.raises(errors.IllegalSaslState, match="without SASL"),
    ):
        admin.list_topics(timeout_ms=20_000)


def test_a_client_without_sasl(kafka: SecuredKafka) -> None:
    with (
        Admin(kafka.address("SASLPLAIN")) as admin,
        pytest.raises(TimedOut, match="does the listener want SASL"),
    ):
        admin.list_topics(timeout_ms=3_000)


def test_the_wrong_port(kafka: SecuredKafka) -> None:
    plain = {**logging_in("PLAIN"), "security.protocol": "SASL_PLAINTEXT"}
    with (
        Admin(kafka.address("SASLTLS"), plain) as admin,
        pytest.raises(TimedOut, match="these are bytes of TLS"),
    ):
        admin.list_topics(timeout_ms=3_000)
    with (
        Admin(kafka.address("SASLPLAIN"), kafka.trusted()) as admin,
        pytest.raises(TimedOut, match="does the port speak TLS"),
    ):
        admin.list_topics(timeout_ms=3_000)
