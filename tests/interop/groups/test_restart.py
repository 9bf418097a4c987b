"""The broker dies or stops while members join, consume and commit: nothing is forgotten."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.groups.checker import losses
from tests.interop.groups.group_run import GroupRun
from tests.interop.groups.member import CLASSIC, CONSUMER
from tests.interop.groups.serving import Serve

pytestmark = pytest.mark.interop

StartRun = Callable[..., GroupRun]
PROTOCOLS = [*(("classic", client) for client in CLASSIC), *(("consumer", c) for c in CONSUMER)]
DOWN_SECONDS = 0.5


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    serve = Serve(tmp_path / "data")
    yield serve
    serve.discard()


def end(serve: Serve, how: str, run: GroupRun) -> None:
    """Stop it in order, or kill it; a client that waits for an answer sees no difference."""
    run.note("broker killed")
    serve.kill() if how == "kill" else serve.stop()


@pytest.mark.parametrize(
    ("protocol", "client", "how"),
    [*((*each, "kill") for each in PROTOCOLS),
     ("classic", "confluent", "stop"), ("consumer", "confluent", "stop")],
)  # fmt: skip
def test_members_continue_after_a_restart(
    protocol: str, client: str, how: str, serve: Serve, start_run: StartRun
) -> None:
    # A client whose session ends by itself would fail the test: members are never killed here.
    run = start_run(partitions=4, address=serve.address, session_ms=8000)
    run.join(client, protocol=protocol)
    run.join(client, protocol=protocol)
    run.produce(40)
    run.wait_until_stable(each=2)
    run.wait_until_consumed()
    end(serve, how, run)
    time.sleep(DOWN_SECONDS)
    serve.start()
    assert run.committed() == run.produced
    run.produce(40)
    run.wait_until_consumed()
    run.join(client, protocol=protocol)
    run.produce(40)
    run.wait_until_spread()
    run.finish()
    if client != "kafkajs":  # this client joins as another member after a lost connection
        assert losses(run.history()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_killed_during_rebalances_and_commits_forgets_nothing(
    how: str, serve: Serve, start_run: StartRun
) -> None:
    run = start_run(partitions=5, address=serve.address)
    run.join("confluent")
    run.wait_until_stable()
    for client in ("kafka_python", "confluent", "aio_kafka", "kafkajs"):
        run.produce(100)
        run.join(client)
        time.sleep(0.7)  # a Python client needs half a second to its first request
        end(serve, how, run)
        serve.start()
    run.produce(100)
    run.wait_until_spread()
    run.finish()
