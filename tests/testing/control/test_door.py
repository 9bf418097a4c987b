"""The control door: calls as JSON, refusals, access."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from embedlog.errors import ConfigError
from embedlog.testing import ControlDoor, Kafka
from embedlog.testing.control.table import table

pytestmark = pytest.mark.slow

LOCAL = {"Content-Type": "application/json"}


def call(
    door: ControlDoor, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    parts = urlsplit(door.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    content = body if isinstance(body, bytes) or body is None else json.dumps(body)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, content, {**LOCAL, **given})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_a_broker_is_killed_and_started(kafka: Kafka) -> None:
    door = kafka.control()
    assert call(door, "GET", "/v1/broker/is_running?node_id=1") == (200, {"value": True})
    assert call(door, "POST", "/v1/broker/kill", {"node_id": 1}) == (200, {"value": None})
    assert call(door, "GET", "/v1/broker/is_running?node_id=1") == (200, {"value": False})
    assert not kafka.broker(1).is_running
    call(door, "POST", "/v1/broker/start", {"node_id": 1})
    assert kafka.broker(1).is_running


def test_an_answer_has_the_fields_of_its_value(kafka: Kafka) -> None:
    body = {"name": "new", "partitions": 2, "config": {"retention.ms": "5"}}
    status, answer = call(kafka.control(), "POST", "/v1/create_topic", body)
    assert status == 200
    assert answer["value"]["partition_count"] == 2
    assert answer["value"]["configs"]["retention.ms"] == "5"
    status, answer = call(kafka.control(), "GET", "/v1/brokers")
    assert answer["value"][0] == {"@noun": "broker", "arguments": {"node_id": 1}}


@pytest.mark.parametrize(
    ("path", "body", "status", "error", "part"),
    [
        ("/v1/broker/kil", {"node_id": 1}, 404, "UnknownVerb", "broker kill"),
        ("/v2/broker", {}, 404, "UnknownVerb", "/v2/broker"),
        ("/v1/broker/kill", {"node": 1}, 400, "WrongCall", "node_id"),
        ("/v1/broker/kill", {"node_id": "one"}, 400, "WrongCall", "expected integer or null"),
        ("/v1/broker/kill", {"node_id": True}, 400, "WrongCall", "expected integer or null"),
        ("/v1/partition/move_to", {"topic": "t"}, 400, "WrongCall", "partition, node_id"),
        ("/v1/partition/move_to", [], 400, "WrongCall", "expected an object"),
        ("/v1/partition/move_to", b"{", 400, "WrongCall", "not JSON"),
        ("/v1/create_topic", {"name": "x", "partitons": 1}, 400, "WrongCall", "partitons"),
        ("/v1/network/split", {"groups": [1]}, 400, "WrongCall", "expected array of integer"),
        ("/v1/registry_fault/hits", {"id": "none"}, 400, "WrongCall", "'none'"),
        ("/v1/broker/kill", {"node_id": 9}, 409, "ConfigError", "no broker 9"),
        ("/v1/create_topic", {"name": "t"}, 409, "TopicAlreadyExists", "t"),
        ("/v1/controller/start", {}, 409, "IllegalState", ""),
    ],
)
def test_a_call_that_cannot_be_made_says_why(
    kafka: Kafka, path: str, body: Any, status: int, error: str, part: str
) -> None:
    found, answer = call(kafka.control(), "POST", path, body)
    assert (found, answer["error"]) == (status, error)
    assert part in answer["message"] + str(answer.get("near"))


def test_methods_and_bodies_are_checked(kafka: Kafka) -> None:
    door = kafka.control()
    assert call(door, "GET", "/v1/broker/kill?node_id=1")[0] == 405
    assert call(door, "DELETE", "/v1/broker/is_running")[0] == 405
    assert (
        call(door, "POST", "/v1/broker/kill", {"node_id": 1}, Content_Type="text/plain")[0] == 415
    )
    assert kafka.broker(1).is_running


def test_pages_of_a_browser_are_refused(kafka: Kafka) -> None:
    door = kafka.control()
    for name, value in (
        ("Host", "evil.example:80"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
    ):
        status, answer = call(door, "POST", "/v1/broker/kill", {"node_id": 1}, **{name: value})
        assert (status, answer["error"]) == (403, "Forbidden")
    assert call(door, "GET", "/verbs", Host="localhost:1", Origin="http://127.0.0.1:8")[0] == 200
    assert kafka.broker(1).is_running


def test_with_a_token_each_request_needs_it(kafka: Kafka) -> None:
    door = kafka.listen_control(token="secret")
    assert call(door, "GET", "/verbs")[0] == 401
    assert call(door, "GET", "/verbs", Authorization="Bearer wrong")[0] == 401
    assert call(door, "GET", "/verbs", Authorization="Bearer secret")[0] == 200


def test_other_machines_need_a_token(kafka: Kafka) -> None:
    for host in ("0.0.0.0", "::", "example.org", ""):
        with pytest.raises(ConfigError, match="needs a token"):
            kafka.listen_control(host)
    with kafka.listen_control("0.0.0.0", token="secret") as door:
        assert call(door, "GET", "/verbs", Authorization="Bearer secret", Host="other")[0] == 200


def test_close_ends_the_door() -> None:
    with Kafka() as kafka:
        door = kafka.control()
        assert kafka.control() is door
        assert call(door, "GET", "/v1/broker/is_running")[1] == {"value": True}
    with pytest.raises(OSError):
        call(door, "GET", "/verbs")


def test_the_openapi_page_describes_every_verb(kafka: Kafka) -> None:
    status, page = call(kafka.control(), "GET", "/openapi.json")
    assert (status, page["openapi"]) == (200, "3.1.0")
    assert page["paths"].keys() == {verb.path for verb in table(Kafka).verbs.values()}
    kill = page["paths"]["/v1/broker/kill"]["post"]
    schema = kill["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["lose_unsynced"] == {"type": "boolean", "default": False}
    assert "SIGKILL" in kill["summary"]
    move = page["paths"]["/v1/partition/move_to"]["post"]["requestBody"]["content"]
    assert move["application/json"]["schema"]["required"] == ["topic", "partition", "node_id"]
    ids = [each["operationId"] for path in page["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids)


def test_every_verb_has_a_text_and_parameters_of_known_types() -> None:
    given_as_it_is = {"what", "decode", "key", "value", "records"}
    for verb in table(Kafka).verbs.values():
        assert verb.text, verb.name
        for each in verb.parameters:
            has_no_type = each.type.kind == "any"
            assert not has_no_type or each.name in given_as_it_is, (verb.name, each.name)
