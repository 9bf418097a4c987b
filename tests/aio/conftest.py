"""A cluster, the transports to it, and an event loop that reports leftover threads and tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import embedlog
from embedlog.testing.loopback_transport import LoopbackTransport

SECONDS_MAX = 30

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened


@pytest.fixture(params=["in process", pytest.param("loopback", marks=pytest.mark.slow), "tcp"])
def connect(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Callable[[], Any]:
    """Returns a new target for each client."""
    if request.param == "in process":
        return lambda: cluster
    if request.param == "loopback":
        return lambda: LoopbackTransport(cluster)
    listener = cluster.listen("127.0.0.1", 0)
    return lambda: listener.address


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a coroutine in a loop that checks its callers. No thread or task may be left."""
    before = set(threading.enumerate())
    failures: list[Any] = []

    async def bounded(main: Coroutine[Any, Any, Any]) -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
        async with asyncio.timeout(SECONDS_MAX):
            result = await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return result

    yield lambda main: asyncio.run(bounded(main), debug=True)
    assert not failures, failures
    started = set(threading.enumerate()) - before
    ours = [each for each in started if not each.name.startswith("embedlog-listener")]
    for each in ours:
        each.join(5)  # its work is done, but it may not have ended yet
    assert not any(each.is_alive() for each in ours), ours
