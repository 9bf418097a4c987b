"""Personas: what a client sees of another broker, and which protocols it then uses."""

from __future__ import annotations

import pytest

from embedlog.broker.dispatch import VERSIONS
from embedlog.errors import ConfigError, UnsupportedVersion
from embedlog.testing import Kafka, personas
from embedlog.testing.personas.tables import TABLE
from tests.server.wire_client import WireClient
from wire.api_keys import NAMES, ApiKey
from wire.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.schemas.metadata import MetadataRequest

ALL = [line for line in TABLE.splitlines() if line and not line.startswith(" ")]


def _connected(kafka: Kafka) -> WireClient:
    host, _, port = kafka.bootstrap_servers.partition(",")[0].rpartition(":")
    return WireClient((host, int(port)))


def _answer(kafka: Kafka, version: int = 3) -> ApiVersionsResponse:
    with _connected(kafka) as client:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer: ApiVersionsResponse = client.ask(request, version)
    return answer


@pytest.mark.parametrize("name", ALL)
def test_a_persona_lists_its_own_versions_as_far_as_they_are_served(name: str) -> None:
    persona = personas.named(name)
    with Kafka(persona=name) as kafka:
        answer = _answer(kafka, min(3, persona.versions["ApiVersions"][1]))
    listed = {NAMES[each.api_key]: (each.min_version, each.max_version) for each in answer.api_keys}
    assert listed, "nothing is served"
    for api, (first, last) in listed.items():
        low, high = persona.versions[api]
        assert low <= first <= last <= high
    common = {
        NAMES[key]
        for key, (low, high) in VERSIONS.items()
        if (known := persona.versions.get(NAMES[key])) and known[0] <= high and low <= known[1]
    }
    assert listed.keys() == common
    assert [each.name for each in answer.finalized_features] == list(persona.levels)
    assert {each.name: each.max_version_level for each in answer.finalized_features} == (
        persona.levels
    )


def test_a_version_beyond_the_persona_is_refused() -> None:
    with Kafka(persona="kafka-2.8") as kafka, _connected(kafka) as client:
        assert client.ask(MetadataRequest(topics=None), 11).brokers
        client.send(MetadataRequest(topics=None), 12)
        assert client.is_closed()


def test_features_of_an_old_broker_are_not_shown() -> None:
    with Kafka(persona="kafka-2.8") as kafka:
        answer = _answer(kafka)
        assert not answer.supported_features and not answer.finalized_features
        assert answer.finalized_features_epoch == -1
    with Kafka(persona="kafka-4.0") as kafka:
        assert {each.name for each in _answer(kafka, 4).supported_features} >= {"group.version"}
        assert "group.version" in {each.name for each in _answer(kafka).finalized_features}


def test_new_groups_and_new_transactions_need_a_persona_that_has_them() -> None:
    with Kafka(persona="kafka-3.6", topics={"t": 1}) as kafka:
        consumer = kafka.consumer(group_id="g", group_protocol="consumer")
        consumer.subscribe(["t"])
        with pytest.raises(UnsupportedVersion):
            consumer.poll(timeout_ms=5_000)
        levels = kafka.cluster.broker().core.image.feature_levels
        assert levels.get("transaction.version", 0) == 0
    with Kafka(persona="kafka-4.0", topics={"t": 1}) as kafka:
        assert kafka.cluster.broker().core.image.feature_level("transaction.version") == 2


@pytest.mark.slow
def test_records_groups_and_transactions_work_on_every_persona() -> None:
    for name in ALL:
        with Kafka(persona=name, topics={"t": 1}) as kafka:
            producer = kafka.producer(transactional_id="tx")
            producer.init_transactions()
            with producer.transaction():
                producer.send("t", b"x")
            consumer = kafka.consumer(
                group_id="g", auto_offset_reset="earliest", isolation_level="read_committed"
            )
            consumer.subscribe(["t"])
            assert [each.value for each in consumer.poll(timeout_ms=10_000)] == [b"x"], name
            consumer.commit()


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_highest_version_narrows_one_api(brokers: int) -> None:
    with Kafka(brokers=brokers, max_versions={"Produce": 9, "fetch": 12}) as kafka:
        listed = {each.api_key: each.max_version for each in _answer(kafka).api_keys}
    assert (listed[ApiKey.PRODUCE], listed[ApiKey.FETCH]) == (9, 12)
    assert listed[ApiKey.METADATA] == VERSIONS[ApiKey.METADATA][1]


def test_a_highest_version_narrows_a_persona() -> None:
    with Kafka(persona="kafka-3.9", max_versions={"Produce": 8}) as kafka:
        listed = {each.api_key: each.max_version for each in _answer(kafka).api_keys}
    assert (listed[ApiKey.PRODUCE], listed[ApiKey.FETCH]) == (8, 17)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"persona": "kafka-3.99"}, "'kafka-3.99': expected one of .*kafka-3.9"),
        ({"max_versions": {"Prodce": 3}}, "no API of Kafka; did you mean 'Produce'"),
        ({"max_versions": {"Produce": 99}}, "Produce=99: expected 0 to"),
        ({"max_versions": {"Envelope": 0}}, "Envelope is not served"),
        ({"config": {"embedlog.api.versions": "Produce"}}, "expected API:first-last"),
        ({"personna": "x"}, "did you mean 'persona'"),
    ],
)
def test_wrong_names_are_refused_with_the_nearest(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Kafka(**given)
