"""Stages between requests and brokers: the order, answers in their place, restarts, acks=0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.errors import NotEnoughReplicas, TimedOut
from embedlog.testing import Kafka
from embedlog.testing.interception import RULES, TIMELINE, Call, Proceed, Stages
from wire.api_keys import ApiKey


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(brokers=2, topics={"orders": {"partitions": 1, "replication_factor": 2}}) as made:
        yield made


def test_stages_see_every_request_from_the_outermost_to_the_innermost(kafka: Kafka) -> None:
    seen: list[tuple[str, int]] = []

    def note(name: str, call: Call, proceed: Proceed) -> Any:
        if call.context.api_key == ApiKey.PRODUCE:
            seen.append((name, call.broker.node_id))
        return proceed(call)

    stages = Stages(kafka.cluster)
    stages.put(RULES, lambda call, proceed: note("inner", call, proceed))
    stages.put(TIMELINE, lambda call, proceed: note("outer", call, proceed))
    kafka.producer().send("orders", b"x").result()
    leader = kafka.partition("orders", 0).leader
    assert seen == [("outer", leader), ("inner", leader)]
    stages.put(RULES, None)
    stages.put(TIMELINE, None)
    kafka.producer().send("orders", b"x").result()
    assert len(seen) == 2


def test_a_stage_answers_in_place_of_the_broker_also_after_a_restart(kafka: Kafka) -> None:
    from embedlog.broker import dispatch

    def refuse(call: Call, proceed: Proceed) -> Any:
        if call.context.api_key != ApiKey.PRODUCE:
            return proceed(call)
        return dispatch.error_response(call.request, call.context, NotEnoughReplicas())

    Stages(kafka.cluster).put(RULES, refuse)
    for node in kafka.brokers:
        node.stop()
        node.start()
    producer = kafka.producer(retries=0, delivery_timeout_ms=5_000, request_timeout_ms=4_000)
    with pytest.raises((NotEnoughReplicas, TimedOut)):
        producer.send("orders", b"x").result()
    assert kafka.partition("orders", 0).end_offsets in ({1: 0, 2: 0},)


def test_a_produce_without_acknowledgement_is_appended_once(kafka: Kafka) -> None:
    Stages(kafka.cluster).put(TIMELINE, lambda call, proceed: proceed(call))
    producer = kafka.producer(acks=0, enable_idempotence=False)
    producer.send("orders", b"x").result()
    producer.flush()
    leader = kafka.partition("orders", 0).leader
    assert leader is not None
    assert kafka.partition("orders", 0).end_offsets[leader] == 1
