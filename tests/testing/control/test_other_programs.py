"""The control door as a plain HTTP client sees it, and its OpenAPI page."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from embedlog.testing import Kafka


def post(url: str, body: Any) -> Any:
    headers = {"Content-Type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]


def get(url: str) -> Any:
    with urlopen(url, timeout=60) as answer:
        return json.load(answer)["value"]


def refused(url: str, body: Any) -> tuple[int, Any]:
    with pytest.raises(HTTPError) as raised:
        post(url, body)
    with raised.value as error:
        return error.code, json.load(error)


def test_a_fault_is_set_and_seen_over_http() -> None:
    with Kafka(topics={"t": 1}) as kafka:
        url = f"{kafka.control().url}/v1"
        body = {"apis": ["Produce"], "topic": "t", "error": "NOT_ENOUGH_REPLICAS", "times": 2}
        fault = post(f"{url}/fault/add", body)
        assert fault["@noun"] == "fault" and "NOT_ENOUGH_REPLICAS" in fault["@repr"]
        kafka.producer().send("t", b"\xff", key=b"k").result()
        post(f"{url}/fault/wait", {"id": fault["@kept"], "n": 2})
        assert get(f"{url}/fault/hits?id={fault['@kept']}") == 2
        (seen, *_) = get(f"{url}/fault/requests?id={fault['@kept']}")
        assert (seen["api"], seen["node_id"]) == ("Produce", 1)
        assert [each["@kept"] for each in post(f"{url}/fault/list", {})] == [fault["@kept"]]
        post(f"{url}/fault/end", {"id": fault["@kept"]})
        assert post(f"{url}/fault/list", {}) == []
        (record,) = post(f"{url}/topic/records", {"topic": "t"})
        assert (record["key"], record["value"]) == ({"@text": "k"}, {"@base64": "/w=="})


def test_refusals_say_what_was_meant() -> None:
    with Kafka(topics={"orders": 1}) as kafka:
        url = f"{kafka.control().url}/v1"
        for path, body, status, error, near in (
            ("fault/add", {"apis": ["Prodcue"], "action": "cut"}, 409, "ConfigError", "Produce"),
            ("fault/add", {"apis": ["Produce"], "topc": "t"}, 400, "WrongCall", "topic"),
            (
                "topic/records",
                {"topic": "orders", "matching": {"vlaue": 1}},
                400,
                "WrongCall",
                "value",
            ),
            ("topic/records", {"topic": "ordres"}, 409, "UnknownTopicOrPartition", "orders"),
            ("wait/group", {"group_id": "g", "state": "Stabel"}, 409, "ConfigError", "Stable"),
        ):
            found, answer = refused(f"{url}/{path}", body)
            assert (found, answer["error"], answer["near"][0]) == (status, error, near)
        status, answer = refused(f"{url}/fault/add", {"apis": ["Fetch"], "where": "x"})
        assert status == 400 and "functions cannot travel" in answer["message"]
        status, answer = refused(f"{url}/clock/run_until", {})
        assert status == 404 and "only a test in the process of the cluster" in answer["message"]
        status, answer = refused(
            f"{url}/wait/records", {"topic": "orders", "count": 1, "timeout": 0.01}
        )
        assert (status, answer["error"], answer["is_assertion"]) == (409, "WaitTimedOut", True)
        assert answer["wait"]["seen"]


@pytest.mark.slow
def test_the_openapi_page_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    with Kafka() as kafka:
        door = kafka.listen_control(token="secret")
        request = Request(f"{door.url}/openapi.json", headers={"Authorization": "Bearer secret"})
        with urlopen(request, timeout=60) as answer:
            page = json.load(answer)
    validator.validate(page)
    add = page["paths"]["/v1/fault/add"]["post"]
    schema = add["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["times"] == {"type": "integer"}
    assert "cut-after-apply" in schema["properties"]["action"]["enum"]
    assert schema["additionalProperties"] is False
    answer = page["paths"]["/v1/fault/hits"]["get"]["responses"]["200"]["content"]
    assert answer["application/json"]["schema"]["properties"]["value"] == {"type": "integer"}
