"""Kafka's keys, their defaults and rules; wrong values are refused, unknown keys warned of."""

from __future__ import annotations

import asyncio
import linecache
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog.client.connect import parse_address
from embedlog.client.consumer.subscription_state import ResetPolicy, parse_duration_ms
from embedlog.client.parse_settings import parse
from embedlog.client.producer.settings import complete
from embedlog.client.settings import ADMIN, CONSUMER, PRODUCER
from embedlog.errors import ConfigError


def test_defaults_are_kafkas() -> None:
    producer = complete(parse(PRODUCER), in_process=False)
    assert producer["acks"] == "all"
    assert producer["linger.ms"] == 5
    assert producer["batch.size"] == 16384
    assert producer["enable.idempotence"] is True
    assert producer["delivery.timeout.ms"] == 120_000
    assert producer["retries"] == 2**31 - 1
    consumer = parse(CONSUMER)
    assert consumer["auto.offset.reset"] == "latest"
    assert consumer["max.poll.records"] == 500
    assert consumer["fetch.max.bytes"] == 52_428_800
    assert parse(ADMIN)["default.api.timeout.ms"] == 60_000


def test_in_process_nothing_lingers_and_nothing_is_lost_on_the_way() -> None:
    settings = complete(parse(PRODUCER), in_process=True, loses_answers=False)
    assert settings["linger.ms"] == 0
    assert settings["batch.size"] == 65536
    assert settings["enable.idempotence"] is False


def test_keys_are_written_with_dots_or_underscores_and_values_may_be_text() -> None:
    settings = parse(PRODUCER, {"linger.ms": "7", "acks": -1}, {"batch_size": 10, "retries": 3})
    assert settings["linger.ms"] == 7
    assert settings["acks"] == "-1"
    assert settings["batch.size"] == 10
    assert settings["retries"] == 3


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.warns(UserWarning, match=r"'linger\.msec'; did you mean 'linger\.ms'"):
        parse(PRODUCER, {"linger.msec": 7})


def test_known_keys_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse(PRODUCER, {"send.buffer.bytes": 1, "client.dns.lookup": "use_all_dns_ips"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batch.size", -1),
        ("batch.size", "many"),
        ("batch.size", 1.5),
        ("batch.size", True),
        ("acks", "2"),
        ("compression.type", "brotli"),
        ("enable.idempotence", "maybe"),
        ("compression.gzip.level", 10),
        ("value.serializer", "a.class.Name"),
        ("security.protocol", "TLS"),
        ("max.in.flight.requests.per.connection", 0),
        ("metadata.max.idle.ms", 4_999),
        ("partitioner.availability.timeout.ms", -1),
        ("compression.lz4.level", 0),
        ("compression.zstd.level", 23),
        ("linger.ms", 2**31),
        ("buffer.memory", -1),
        ("send.buffer.bytes", -2),
        ("metadata.recovery.strategy", "hope"),
    ],
)
def test_a_wrong_value_is_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        parse(PRODUCER, {key: value})


def test_what_contradicts_idempotence_turns_it_off_unless_it_was_asked_for() -> None:
    for conflict in ({"acks": 1}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}):
        settings = complete(parse(PRODUCER, conflict), in_process=False)
        assert settings["enable.idempotence"] is False
        with pytest.raises(ConfigError, match="contradicts"):
            complete(parse(PRODUCER, conflict, {"enable_idempotence": True}), in_process=False)


def test_the_delivery_timeout_covers_linger_and_one_request() -> None:
    with pytest.raises(ConfigError, match="at least"):
        complete(parse(PRODUCER, {"delivery.timeout.ms": 30_000}), in_process=False)
    long = complete(parse(PRODUCER, {"request.timeout.ms": 200_000}), in_process=False)
    assert long["delivery.timeout.ms"] == 200_005


def test_the_default_delivery_timeout_ends_where_an_int_does() -> None:
    settings = complete(parse(PRODUCER, {"linger.ms": 2**31 - 1}), in_process=False)
    assert settings["delivery.timeout.ms"] == 2**31 - 1


def test_gzip_has_no_level_0() -> None:
    with pytest.raises(ConfigError, match=r"compression\.gzip\.level=0"):
        complete(parse(PRODUCER, {"compression.gzip.level": 0}), in_process=False)
    for level in (-1, 1, 9):
        complete(parse(PRODUCER, {"compression.gzip.level": level}), in_process=False)


def test_all_conflicts_with_idempotence_are_named() -> None:
    asked = {"enable.idempotence": True, "acks": "1", "retries": 0}
    with pytest.raises(ConfigError, match=r"acks=1 \(must be all\), retries=0"):
        complete(parse(PRODUCER, asked), in_process=False)
    for off in ({"acks": 0}, {"retries": 0}):
        settings = complete(parse(PRODUCER, {"enable.idempotence": False, **off}), in_process=False)
        assert settings["enable.idempotence"] is False


KAFKAS_DEFAULTS = {
    "batch.size": 16_384, "buffer.memory": 33_554_432, "client.dns.lookup": "use_all_dns_ips",
    "compression.type": "none", "connections.max.idle.ms": 540_000, "linger.ms": 5,
    "delivery.timeout.ms": 120_000, "max.block.ms": 60_000, "max.request.size": 1_048_576,
    "max.in.flight.requests.per.connection": 5, "metadata.max.age.ms": 300_000,
    "metadata.max.idle.ms": 300_000, "metadata.recovery.strategy": "rebootstrap",
    "metadata.recovery.rebootstrap.trigger.ms": 300_000, "partitioner.class": None,
    "partitioner.adaptive.partitioning.enable": True, "partitioner.availability.timeout.ms": 0,
    "partitioner.ignore.keys": False, "reconnect.backoff.ms": 50, "retries": 2**31 - 1,
    "reconnect.backoff.max.ms": 1_000, "request.timeout.ms": 30_000, "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 1_000, "socket.connection.setup.timeout.ms": 10_000,
    "socket.connection.setup.timeout.max.ms": 30_000, "acks": "all", "enable.idempotence": True,
}  # fmt: skip


def test_every_default_of_a_producer_is_kafkas() -> None:
    settings = complete(parse(PRODUCER), in_process=False)
    assert {name: settings[name] for name in KAFKAS_DEFAULTS} == KAFKAS_DEFAULTS


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT1S", 1_000), ("P1DT2H", 93_600_000), ("PT1H30M", 5_400_000), ("PT0.5S", 500)],
)
def test_durations_are_iso_8601(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds
    assert ResetPolicy(f"by_duration:{text}").timestamp(10**12) == 10**12 - milliseconds


@pytest.mark.parametrize("text", ["P", "1S", "PT", "by_duration:", "smallest", ""])
def test_other_reset_policies_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        ResetPolicy(text if not text.startswith("P") else f"by_duration:{text}")


def test_addresses() -> None:
    assert parse_address("localhost:9092") == ("localhost", 9092)
    assert parse_address("PLAINTEXT://10.0.0.1:1") == ("10.0.0.1", 1)
    assert parse_address("[::1]:9092") == ("::1", 9092)
    for wrong in ("localhost", ":9092", "localhost:", "localhost:0", "localhost:99999", "a:b"):
        with pytest.raises(ConfigError, match="bootstrap"):
            parse_address(wrong)


def _warned(make: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make().close()
    return caught


MAKES: dict[str, Callable[..., Any]] = {
    "Producer": embedlog.Producer,
    "Consumer": embedlog.Consumer,
    "Admin": embedlog.Admin,
    "cluster.producer": lambda cluster, **settings: cluster.producer(**settings),
    "cluster.consumer": lambda cluster, **settings: cluster.consumer(**settings),
    "cluster.admin": lambda cluster, **settings: cluster.admin(**settings),
}


@pytest.mark.parametrize("name", MAKES)
def test_the_warning_of_an_unknown_setting_points_at_the_users_line(name: str) -> None:
    with embedlog.open() as cluster:
        caught = _warned(lambda: MAKES[name](cluster, surely_unknown=1))
    assert [each.filename for each in caught] == [__file__]
    line = linecache.getline(__file__, caught[0].lineno)
    assert "cluster" in line


@pytest.mark.parametrize("client", ["Producer", "Consumer", "Admin"])
def test_the_clients_for_asyncio_warn_once_at_the_users_line(client: str) -> None:
    async def main(cluster: Any) -> None:
        await getattr(embedlog.aio, client)(cluster, surely_unknown=1).close()

    with embedlog.open() as cluster, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main(cluster))
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    ("definitions", "key", "text"),
    [
        (CONSUMER, "consumer_timeout_ms", "poll(timeout_ms=...) says how long to wait"),
        (CONSUMER, "api_version", "is not needed"),
        (CONSUMER, "linger_ms", "is a setting of producers; it has no effect here"),
        (PRODUCER, "group.id", "is a setting of consumers; it has no effect here"),
        (PRODUCER, "queue.buffering.max.ms", "is 'linger.ms' here"),
        (PRODUCER, "Linger_ms", "did you mean 'linger.ms'?"),
        (PRODUCER, "acsk", "it has no effect"),
        (PRODUCER, "nonsense", "'nonsense'; it has no effect"),
        (ADMIN, "transactional_id", "is a setting of producers; it has no effect here"),
    ],
)
def test_an_unknown_setting_is_explained_and_nothing_absurd_proposed(
    definitions: Any, key: str, text: str
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parse(definitions, {key: 1})
    (warning,) = caught
    assert text in str(warning.message)
    assert ("did you mean" in str(warning.message)) == ("did you mean" in text)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"enable_idempotence": False}, "contradicts enable.idempotence=false"),
        ({"acks": "1"}, "transactional.id='me' contradicts acks=1"),
        ({"retries": 0}, "transactional.id='me' contradicts retries=0"),
        ({"max_in_flight_requests_per_connection": 6}, "transactional.id='me' contradicts max"),
        ({"transactional_id": " "}, "transactional.id='': must not be empty"),
        ({"transaction_timeout_ms": 0}, "transaction.timeout.ms=0: must be between 1"),
        (
            {"transaction_two_phase_commit_enable": True, "transaction_timeout_ms": 5},
            "transaction.timeout.ms=5 contradicts transaction.two.phase.commit.enable",
        ),
    ],
)
@pytest.mark.parametrize("in_process", [True, False])
def test_what_transactions_do_not_go_with_is_refused(
    given: dict[str, Any], text: str, in_process: bool
) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        complete(parse(PRODUCER, {"transactional_id": "me", **given}), in_process=in_process)


@pytest.mark.parametrize("in_process", [True, False])
def test_a_transactional_producer_is_idempotent(in_process: bool) -> None:
    settings = complete(parse(PRODUCER, {"transactional_id": "me"}), in_process=in_process)
    assert settings["enable.idempotence"]
    assert settings["transaction.timeout.ms"] == 60_000
    two_phases = {"transactional_id": "me", "transaction_two_phase_commit_enable": "true"}
    settings = complete(parse(PRODUCER, two_phases), in_process=in_process)
    assert settings["transaction.timeout.ms"] == 2**31 - 1


def test_settings_of_transactions_do_nothing_without_a_transactional_id() -> None:
    with pytest.warns(UserWarning, match=r"'transaction\.timeout\.ms': there is no transactional"):
        complete(parse(PRODUCER, {"transaction_timeout_ms": 5}), in_process=True)


def test_settings_without_effect_say_so_once() -> None:
    given: dict[str, Any] = {
        "bootstrap.servers": "elsewhere:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.username": "me",
        "reconnect_backoff_ms": 7,
        "acks": "all",
    }
    with embedlog.open() as cluster:
        address = cluster.listen("127.0.0.1", 0).address
        for make in (embedlog.Producer, embedlog.Consumer, embedlog.Admin):
            chosen = {k: v for k, v in given.items() if k != "acks" or make is embedlog.Producer}
            (warning,) = _warned(lambda make=make, chosen=chosen: make(cluster, chosen))
            assert str(warning.message) == (
                "no effect of 'bootstrap.servers', 'reconnect.backoff.ms', 'sasl.username', "
                "'security.protocol': the client was given a cluster of this process"
            )
            assert warning.filename == __file__
            (warning,) = _warned(lambda make=make: make(address, bootstrap_servers="elsewhere:1"))
            assert str(warning.message) == (
                "no effect of 'bootstrap.servers': the client was given another address"
            )
            idle: Any = {"sasl_username": "me", "ssl_cafile": "/tmp/ca.pem"}
            (warning,) = _warned(lambda make=make, idle=idle: make(address, **idle))
            assert str(warning.message) == (
                "no effect of 'sasl.username', 'ssl.truststore.location': "
                "security.protocol is PLAINTEXT"
            )
        # Defaults, and settings with an effect, cause no warning.
        assert not _warned(lambda: cluster.producer(security_protocol="PLAINTEXT", linger_ms=5))
        assert not _warned(lambda: embedlog.Consumer(address, reconnect_backoff_ms=7))
        assert not _warned(lambda: embedlog.Producer(bootstrap_servers=address))


def test_what_another_setting_leaves_without_effect_says_so() -> None:
    with embedlog.open() as cluster:
        (warning,) = _warned(lambda: cluster.consumer(session_timeout_ms=9_000))
        assert str(warning.message) == (
            "no effect of 'session.timeout.ms': the consumer has no group.id"
        )
        assert warning.filename == __file__
        (warning,) = _warned(
            lambda: cluster.producer(compression_type="gzip", compression_lz4_level=3)
        )
        assert str(warning.message) == (
            "no effect of 'compression.lz4.level': compression.type is 'gzip'"
        )
        assert not _warned(lambda: cluster.consumer(group_id="g", session_timeout_ms=9_000))
        assert not _warned(
            lambda: cluster.producer(compression_type="lz4", compression_lz4_level=3)
        )
