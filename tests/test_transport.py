"""The transport inside one process: versions, the end of a client, and the work that is due."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.errors import ClosedError, UnsupportedVersion
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport, newest_common
from wire.api_keys import ApiKey
from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse

NODE = 1


class Duty:
    def __init__(self) -> None:
        self.count = 0

    def run_once(self, _now_ms: int) -> int | None:
        self.count += 1
        return None


class Broker:
    """Answers each request, and notes its version."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.appended: list[Any] = []
        self.runtime = sim_runtime()
        self.transport = InProcessTransport(
            self._handle,
            lambda api_key, version: (api_key, version),
            {ApiKey.HEARTBEAT: (0, 3)},
            self.runtime,
            append_one=self._append,
        )

    def _handle(self, context: Any, _request: Any) -> Any:
        self.versions.append(context[1])
        return HeartbeatResponse()

    def _append(self, *given: Any) -> Any:
        self.appended.append(given)
        return (0, 0, -1, 0, False, 0, 1)

    def send(self, **more: Any) -> Any:
        return self.transport.send(NODE, HeartbeatRequest(), **more)

    def append(self) -> Any:
        return self.transport.append("t", bytes(16), 0, b"", 1, 1_000, True)  # noqa: FBT003


def test_a_version_is_for_one_request() -> None:
    broker = Broker()
    for given in ({}, {"version": 1}, {}, {"version": 0}, {}):
        assert broker.send(**given).done()
    assert broker.versions == [3, 1, 3, 0, 3]


def test_a_request_without_a_common_version_is_refused() -> None:
    assert newest_common(HeartbeatRequest, (0, 3)) == 3
    assert newest_common(HeartbeatRequest, (4, 9)) == 4
    for served in ((5, 9), None):
        with pytest.raises(UnsupportedVersion):
            newest_common(HeartbeatRequest, served)


def test_a_closed_client_sends_and_appends_nothing() -> None:
    broker = Broker()
    broker.send()
    broker.append()
    broker.transport.close()
    assert isinstance(broker.send().error(), ClosedError)
    with pytest.raises(ClosedError):
        broker.append()
    assert (broker.versions, len(broker.appended)) == ([3], 1)


@pytest.mark.parametrize("call", ["send", "append"])
def test_a_call_does_the_work_that_is_due(call: str) -> None:
    broker, duty = Broker(), Duty()
    broker.runtime.scheduler.add(duty)
    getattr(broker, call)()
    assert duty.count == 1
    getattr(broker, call)()
    assert duty.count == 1


def test_a_clusters_end_lets_a_client_send_its_records_first() -> None:
    broker = Broker()
    broker.transport.before_end = broker.append
    broker.transport.end()
    assert len(broker.appended) == 1
    broker.transport.end()
    assert len(broker.appended) == 1, "the client is closed already"
