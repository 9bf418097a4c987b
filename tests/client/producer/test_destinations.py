"""The wait for the metadata of a topic that the producer does not know yet, and its ends."""

from __future__ import annotations

import threading
from typing import Any

from embedlog import errors
from embedlog.client.producer.producer import Producer
from embedlog.errors import ClosedError
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.client.producer.test_buffer_pool import wait_until
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.error_codes import ErrorCode
from wire.schemas.metadata import MetadataRequest, MetadataResponse


def test_a_close_ends_a_send_that_waits_for_metadata() -> None:
    broker = ScriptedBroker({"one": 1})
    broker.faults.append(lambda asked: Pending() if isinstance(asked, MetadataRequest) else PASS)
    producer = Producer(broker.transport(), max_block_ms=9_000)
    told: list[Any] = []

    def send() -> None:
        try:
            told.append(producer.send("one", b"v").exception())
        except ClosedError as error:
            told.append(error)

    sending = threading.Thread(target=send)
    sending.start()
    wait_until(lambda: bool(broker.of_kind(MetadataRequest)))
    producer.close(0)
    sending.join(4)
    assert not sending.is_alive(), "it waits for max.block.ms"
    assert [type(each) for each in told] == [ClosedError]


def test_metadata_that_is_refused_for_good_is_not_waited_for() -> None:
    runtime = sim_runtime(seed=1)
    broker = ScriptedBroker({"one": 1}, runtime)
    refusal = MetadataResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker.faults.append(lambda asked: refusal if isinstance(asked, MetadataRequest) else PASS)
    with Producer(broker.transport(), max_block_ms=60_000) as producer:
        error = producer.send("one", b"v").exception()
        assert isinstance(error, errors.ClusterAuthorizationFailed)
        assert runtime.clock.monotonic_ms() < 1_000
