"""The registry in the process: with and without its cluster."""

from __future__ import annotations

import json
import threading

import pytest

from embedlog.errors import ClosedError, ConfigError
from embedlog.testing import Kafka, Registry
from embedlog.testing.registry.errors import RegistryError
from tests.testing.registry.calls import BROKEN, RECORD, WIDER, Calls


def test_a_cluster_has_a_registry() -> None:
    kafka = Kafka()
    assert kafka.registry is kafka.registry
    number = kafka.registry.register("s", RECORD)
    assert kafka.registry.schema_by_id(number).text == RECORD
    call = Calls(kafka.registry)
    assert call("GET", "/subjects") == ["s"]
    kafka.close()
    with pytest.raises(ClosedError):
        _ = kafka.registry.url
    call.close()


def test_without_a_url_no_thread_starts() -> None:
    before = threading.active_count()
    with Registry() as registry:
        registry.register("s", RECORD)
        assert threading.active_count() == before
        assert "not listening" in repr(registry)


def test_schemas_are_registered_without_http(registry: Registry) -> None:
    assert registry.register("a", json.loads(RECORD)) == 1
    assert registry.register("b", '{"type":"object"}', type="JSON") == 2
    assert registry.register("p", 'syntax="proto3"; message M {}', type="PROTOBUF") == 3
    uses = [("R", "a", 1)]
    text = '{"type":"array","items":"R"}'
    assert registry.register("c", text, references=uses) == 4
    assert registry.subjects() == ["a", "b", "c", "p"]
    assert [each.version for each in registry.versions("a")] == [1]
    with pytest.raises(RegistryError) as caught:
        registry.register("a", BROKEN)
    assert caught.value.code == 409
    registry.set_compatibility("NONE", "a")
    assert registry.register("a", BROKEN) == 5
    with pytest.raises(RegistryError, match="40403"):
        registry.schema_by_id(99)


def test_requests_are_seen(call: Calls) -> None:
    call.register("s", RECORD)
    call("GET", "/nothing?x=1")
    first, second = call.registry.requests
    assert (first.method, first.verb, first.status) == ("POST", "register", 200)
    assert first.body == {"schema": RECORD}
    assert (second.path, second.verb, second.query, second.status) == (
        "/nothing",
        "",
        {"x": "1"},
        404,
    )


def test_credentials_are_asked_for_on_request(call: Calls) -> None:
    call.registry.require_user("me", "secret")
    assert call("GET", "/subjects") == 401
    assert call.raw("GET", "/subjects")[1]["www-authenticate"].startswith("Basic")
    call.headers["Authorization"] = "Basic bWU6d3Jvbmc="
    assert call("GET", "/subjects") == 401
    call.headers["Authorization"] = "Basic bWU6c2VjcmV0"
    assert call("GET", "/subjects") == []


def test_the_settings_of_each_client(registry: Registry) -> None:
    assert registry.client_config() == {"url": registry.url}
    registry.require_user("me", "secret")
    assert registry.client_config("confluent")["basic.auth.user.info"] == "me:secret"
    assert registry.client_config("java")["schema.registry.url"] == registry.url
    assert registry.client_config("kafkajs")["auth"]["username"] == "me"
    with pytest.raises(ConfigError, match="did you mean 'confluent'"):
        registry.client_config("confluence")


def test_a_snapshot_is_restored(call: Calls) -> None:
    call.register("s", RECORD)
    saved = call.registry.snapshot()
    call.register("s", WIDER)
    call("PUT", "/config", {"compatibility": "NONE"})
    call("DELETE", "/subjects/s/versions/1")
    call.registry.restore(saved)
    assert call("GET", "/subjects/s/versions") == [1]
    assert call("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert call.register("s", WIDER) == 2
    call.registry.restore(saved)
    assert call("GET", "/subjects/s/versions") == [1]


def test_many_threads_register_one_schema_once(registry: Registry) -> None:
    found: list[int] = []

    def register(number: int) -> None:
        found.append(registry.register(f"s{number % 3}", RECORD))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(30)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert found == [1] * 30
    assert all(len(registry.versions(f"s{number}")) == 1 for number in range(3))
