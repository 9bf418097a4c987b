"""Leaks of a test are found, and told apart from clients and threads that are just ending."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
from embedlog.broker import dispatch
from embedlog.errors import ConfigError, UnknownServerError
from embedlog.testing import Kafka, Leak
from embedlog.testing.interception import RULES, Call, Proceed, Stages
from wire.api_keys import ApiKey


@pytest.fixture(params=[1, 2], ids=["one", "two"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"orders": 2}) as made:
        made.watch_leaks()
        yield made


def test_a_test_that_closes_its_clients_leaves_nothing(kafka: Kafka) -> None:
    with embedlog.Producer(kafka.bootstrap_servers) as producer:
        producer.send("orders", b"x", partition=0).result()
        producer.send("orders", b"x", partition=1).result()
    with kafka.producer(transactional_id="t") as writer:
        writer.init_transactions()
        with writer.transaction():
            writer.send("orders", b"x")
    thread = threading.Thread(target=lambda: None)
    thread.start()
    assert kafka.leaks() == []
    thread.join()


def test_open_connections_are_named_by_their_clients(kafka: Kafka) -> None:
    producer = embedlog.Producer(kafka.bootstrap_servers, client_id="mine")
    producer.send("orders", b"x").result()
    (found,) = kafka.leaks()
    assert found.kind == "connections"
    assert found.what.startswith("client 'mine' (")
    assert str(found).startswith("connections: client 'mine'")
    producer.close()
    assert kafka.leaks() == []


def test_a_connection_that_ends_during_the_wait_is_no_leak(kafka: Kafka) -> None:
    host, port = kafka.bootstrap_servers.partition(",")[0].split(":")
    with socket.create_connection((host, int(port))):
        # The listener accepts it before it answers this client.
        with embedlog.Producer(kafka.bootstrap_servers) as producer:
            producer.send("orders", b"x", partition=0).result()
            producer.send("orders", b"x", partition=1).result()
        assert [each.kind for each in kafka.leaks()] == ["connections"]
    assert kafka.leaks() == []


@pytest.mark.slow
def test_an_open_transaction_is_named(kafka: Kafka) -> None:
    with kafka.producer(transactional_id="t-1") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x").result()
        (found,) = kafka.leaks()
        assert found.kind == "transactions"
        assert found.what.startswith("'t-1' of producer ")
        producer.abort_transaction()
        assert kafka.leaks() == []


def test_a_thread_that_lives_on_is_named(kafka: Kafka) -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="worker-7")
    thread.start()
    try:
        assert kafka.leaks() == [Leak("threads", "worker-7")]
    finally:
        end.set()
        thread.join()
    assert kafka.leaks() == []


def test_an_exception_of_a_broker_is_an_error(kafka: Kafka) -> None:
    def break_(call: Call, proceed: Proceed) -> Any:
        if call.context.api_key != ApiKey.CREATE_TOPICS:
            return proceed(call)
        return dispatch.call(None, call.context, call.request)

    Stages(kafka.cluster).put(RULES, break_)
    with embedlog.Admin(kafka.bootstrap_servers) as admin:
        (failure,) = admin.create_topics({"x": 1}).errors.values()
    assert isinstance(failure, UnknownServerError)
    (found,) = kafka.leaks()
    assert found.kind == "errors"
    assert "version" in found.what
    assert "AttributeError" in found.what


def test_only_leaks_of_the_given_kinds_are_looked_for(kafka: Kafka) -> None:
    with embedlog.Producer(kafka.bootstrap_servers) as producer:
        producer.send("orders", b"x", partition=0).result()
        producer.send("orders", b"x", partition=1).result()
        assert {each.kind for each in kafka.leaks()} == {"connections"}
        assert kafka.leaks("threads", "transactions") == []


def test_a_misspelt_kind_is_refused(kafka: Kafka) -> None:
    with pytest.raises(ConfigError, match="did you mean 'connections'"):
        kafka.leaks("conections")


def test_errors_of_the_disk_are_none_of_the_brokers(kafka: Kafka) -> None:
    try:
        raise OSError(28, "No space left")
    except OSError as error:
        logging.getLogger("embedlog.storage").error("cannot write", exc_info=error)
    assert kafka.leaks() == []


@pytest.fixture
def handlers() -> list[logging.Handler]:
    """The handlers of our logger; the session's cluster may have one."""
    return logging.getLogger("embedlog").handlers.copy()


def test_lines_of_a_program_without_handlers_still_appear(
    handlers: list[logging.Handler],
    kafka: Kafka,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    other = Kafka()
    other.watch_leaks()
    logging.getLogger("embedlog.storage").warning("the disk is slow")
    logging.getLogger("embedlog.storage").info("a detail")
    assert capsys.readouterr().err == "the disk is slow\n"
    kafka.close()
    assert other.leaks() == []
    other.close()
    assert logging.getLogger("embedlog").handlers == handlers
