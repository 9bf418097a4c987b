"""TLS between clients and a listener: trust, agreed versions, and mistakes of users."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import Admin, Consumer, Producer
from embedlog.client.network.security import SslHandshakeFailed
from embedlog.errors import ConfigError, KafkaError, TimedOut
from tests.client.secure_proxy import Authority, SecureProxy, secured_cluster, tls_port

AES128 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def proxy(authority: Authority) -> Iterator[SecureProxy]:
    with secured_cluster(authority.server_context("localhost", "127.0.0.1")) as proxy:
        yield proxy


def trusting(authority: Authority, **settings: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": authority.pem,
        "client.dns.lookup": "use_all_dns_ips",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def round_trip(address: str, settings: dict[str, Any], count: int = 3, size: int = 1) -> None:
    """Return records written and read again by clients with these settings."""
    values = [b"%d" % number * size for number in range(count)]
    with Producer(address, settings) as producer:
        sent = [producer.send("secure", value) for value in values]
        first = sent[0].result(20).offset
        sent[-1].result(20)
    with Consumer(address, settings) as consumer:
        consumer.assign([("secure", 0)])
        consumer.seek(("secure", 0), first)
        found: list[Any] = []
        while len(found) < count:
            records = list(consumer.poll(10_000))
            assert records
            found += records
        assert [record.value for record in found] == values


def refused(address: str, settings: dict[str, Any]) -> SslHandshakeFailed:
    """Check that each kind of client fails with the same error; return the first one."""
    told = []
    with Admin(address, settings) as admin:
        for _ in range(2):  # the client lives on, and says so again
            with pytest.raises(SslHandshakeFailed) as raised:
                admin.list_topics(timeout_ms=20_000)
            told.append(raised.value)
        with pytest.raises(SslHandshakeFailed):
            admin.describe_cluster(timeout_ms=20_000)
    with Producer(address, settings, max_block_ms=20_000) as producer:
        assert isinstance(producer.send("secure", b"v").exception(20), SslHandshakeFailed)
    with Consumer(address, settings) as consumer:
        consumer.assign([("secure", 0)])
        with pytest.raises(SslHandshakeFailed):
            consumer.poll(20_000)
    assert not told[0].retriable
    assert address in str(told[0])
    return told[0]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_records_go_through_either_version(
    authority: Authority, proxy: SecureProxy, version: str
) -> None:
    round_trip(proxy.address, trusting(authority, ssl_enabled_protocols=version))
    assert {each[0] for each in proxy.handshakes} == {version}


@pytest.mark.slow
def test_large_records_go_through_whole(authority: Authority, proxy: SecureProxy) -> None:
    settings = trusting(authority, send_buffer_bytes=20_000, receive_buffer_bytes=20_000)
    round_trip(proxy.address, settings, count=12, size=200_000)


def test_the_newest_version_is_agreed_on(authority: Authority, proxy: SecureProxy) -> None:
    round_trip(proxy.address, trusting(authority))
    assert {each[0] for each in proxy.handshakes} == {"TLSv1.3"}


def test_trust_comes_from_a_file_too(
    authority: Authority, proxy: SecureProxy, tmp_path: Path
) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(authority.pem)
    for name in ("ssl.truststore.location", "ssl.ca.location", "ssl_cafile"):
        round_trip(proxy.address, {"security.protocol": "ssl", name: str(path)})


def test_lines_of_certificates_may_be_joined_by_spaces(
    authority: Authority, proxy: SecureProxy
) -> None:
    settings = trusting(authority)
    settings["ssl.truststore.certificates"] = authority.pem.replace("\n", " ")
    round_trip(proxy.address, settings)


@pytest.mark.slow
def test_a_stranger_is_not_trusted(authority: Authority, proxy: SecureProxy) -> None:
    told = refused(proxy.address, trusting(Authority()))
    assert "the certificate is not accepted: " in str(told)
    # The system trusts public authorities, but not this one.
    refused(proxy.address, {"security.protocol": "SSL"})
    round_trip(
        proxy.address,
        {"security.protocol": "SSL", "enable.ssl.certificate.verification": False},
    )


def test_the_host_has_to_be_the_one_of_the_certificate(authority: Authority) -> None:
    with secured_cluster(authority.server_context("other.example")) as proxy:
        told = refused(proxy.address, trusting(authority))
        assert "localhost" in str(told)
        assert "is not valid for" in str(told)
        for off in ("", "none"):
            settings = trusting(authority)
            settings["ssl.endpoint.identification.algorithm"] = off
            round_trip(proxy.address, settings)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("form", ["text", "file", "two files"])
def test_a_client_shows_its_certificate(
    authority: Authority, version: str, form: str, tmp_path: Path
) -> None:
    context = authority.server_context("localhost", wants_certificate=True)
    chain, key = authority.issue("alice.example", password="long word")
    settings = trusting(authority, ssl_enabled_protocols=version, ssl_key_password="long word")
    (tmp_path / "both.pem").write_text(chain + key)
    (tmp_path / "chain.pem").write_text(chain)
    (tmp_path / "key.pem").write_text(key)
    settings |= {
        "text": {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key},
        "file": {"ssl.keystore.location": tmp_path / "both.pem"},
        "two files": {
            "ssl.certificate.location": tmp_path / "chain.pem",
            "ssl.key.location": tmp_path / "key.pem",
        },
    }[form]
    with secured_cluster(context) as proxy:
        round_trip(proxy.address, settings)
        names = {each[1]["subjectAltName"] for each in proxy.handshakes}
        assert names == {(("DNS", "alice.example"),)}


def test_a_client_without_a_certificate_is_told(authority: Authority) -> None:
    context = authority.server_context("localhost", wants_certificate=True)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls_port(context) as address:
        assert "alert handshake failure" in str(refused(address, trusting(authority)))


def test_a_client_without_a_certificate_is_told_in_tls_1_3_too(authority: Authority) -> None:
    """In TLS 1.3 the refusal comes after the handshake, and may be lost with the connection."""
    context = authority.server_context("localhost", wants_certificate=True)
    with (
        tls_port(context) as address,
        Admin(address, trusting(authority)) as admin,
        pytest.raises((SslHandshakeFailed, TimedOut), match="certificate"),
    ):
        admin.list_topics(timeout_ms=2_000)


def test_versions_that_do_not_meet(authority: Authority) -> None:
    context = authority.server_context("localhost")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    with tls_port(context) as address:
        told = refused(address, trusting(authority, ssl_enabled_protocols="TLSv1.2"))
        assert "alert protocol version" in str(told)


def test_cipher_suites_are_those_that_are_allowed(authority: Authority, proxy: SecureProxy) -> None:
    for suites in (AES128, "ECDHE-ECDSA-AES128-GCM-SHA256"):
        round_trip(proxy.address, trusting(authority, ssl_cipher_suites=suites))
    assert {each[0] for each in proxy.handshakes} == {"TLSv1.2"}
    told = refused(proxy.address, trusting(authority, ssl_cipher_suites="TLS_AES_128_CCM_SHA256"))
    assert "the peer chose the cipher suite TLS_AES_256_GCM_SHA384" in str(told)


@pytest.mark.slow
def test_a_plain_port_spoken_to_with_tls(authority: Authority) -> None:
    with embedlog.open() as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        with (
            Admin(address, trusting(authority)) as admin,
            pytest.raises(TimedOut, match=f"{address}.*TLS handshake: does the port speak TLS"),
        ):
            admin.list_topics(timeout_ms=1_000)
        with Producer(address, trusting(authority), max_block_ms=1_000) as producer:
            told = producer.send("secure", b"v").exception(20)
            assert isinstance(told, TimedOut)
            assert "does the port speak TLS, and" in str(told)


def test_a_port_that_answers_tls_with_something_else(authority: Authority) -> None:
    import socket
    import threading

    def serve() -> None:
        for _ in range(5):
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        told = refused(address, trusting(authority))
        assert "wrong version number: does the port speak TLS?" in str(told)


@pytest.mark.slow
def test_a_tls_port_spoken_to_in_plain_text(proxy: SecureProxy) -> None:
    with Admin(proxy.address) as admin, pytest.raises(TimedOut) as raised:
        admin.list_topics(timeout_ms=1_000)
    assert "TLS" in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ssl.truststore.location": "/no/such/file"}, "'/no/such/file': No such file"),
        ({"ssl.truststore.certificates": "none"}, "no trusted PEM certificates"),
        ({"ssl.keystore.location": "/no/such/file"}, "'/no/such/file': No such file"),
        ({"ssl.keystore.key": "k"}, "give both or none"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"}, "no PEM certificate"),
        ({"ssl.ca.location": "a", "ssl.ca.pem": "b"}, "give one of both"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "allowed are TLSv1.2 and TLSv1.3"),
        ({"ssl.enabled.protocols": ""}, "no TLS version is left"),
        ({"ssl.cipher.suites": "ROT13"}, "none of the cipher suites is known: ROT13"),
        (
            {"ssl.cipher.suites": AES128, "ssl.enabled.protocols": "TLSv1.3"},
            "no TLS version is left",
        ),
        ({"ssl.truststore.type": "JKS"}, "must be one of PEM"),
    ],
)
def test_wrong_settings_are_refused_at_construction(settings: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Admin("localhost:1", {"security.protocol": "SSL", **settings})


def test_a_key_without_its_password(authority: Authority) -> None:
    chain, key = authority.issue("alice.example", password="long word")
    settings = {"ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    with pytest.raises(ConfigError, match="the private key is encrypted"):
        Admin("localhost:1", {"security.protocol": "SSL", **settings})
    with pytest.raises(ConfigError, match="no PEM certificate with its key") as raised:
        Admin("localhost:1", {**settings, "security.protocol": "SSL", "ssl.key.password": "other"})
    assert "other" not in str(raised.value)


def test_plain_clients_load_no_ssl() -> None:
    code = (
        "import sys, embedlog\n"
        "with embedlog.open() as cluster:\n"
        "    with embedlog.Admin(cluster.listen('127.0.0.1', 0).address) as admin:\n"
        "        admin.list_topics()\n"
        "print(sorted({'ssl', 'wire.sasl', 'hashlib', 'hmac'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_refusal_is_a_kafka_error_that_no_broker_sent() -> None:
    assert issubclass(SslHandshakeFailed, KafkaError)
    assert (SslHandshakeFailed.code, SslHandshakeFailed.retriable) == (-1, False)
