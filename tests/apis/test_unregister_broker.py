"""UnregisterBroker on a single broker; several brokers are in tests/controller."""

from __future__ import annotations

import pytest

from tests.apis.ask import ask, opened
from wire.schemas.unregister_broker import UnregisterBrokerRequest


@pytest.mark.parametrize(
    ("broker_id", "code", "message"),
    [
        (9, 102, "Broker ID 9 is not currently registered"),
        (-1, 102, "Broker ID -1 is not currently registered"),
        (1, 42, "The only broker of a cluster cannot be unregistered."),
    ],
)
def test_an_unknown_or_single_broker_is_refused(broker_id: int, code: int, message: str) -> None:
    with opened() as cluster:
        answer = ask(cluster, UnregisterBrokerRequest(broker_id=broker_id), 0)
        assert (answer.error_code, answer.error_message) == (code, message)
        cluster.create_topic("still", 1)
