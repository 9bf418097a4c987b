"""embedlog gives the answers of Apache Kafka 4.4.0, field by field; differences are listed."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
import tests.golden.scenarios  # noqa: F401  (registers them)
from tests.golden.brokers import BROKERS, PLAIN
from tests.golden.compare import differences, places, title
from tests.golden.differences import DIFFERENCES, Difference
from tests.golden.record import RECORDED
from tests.golden.run import BROKER_OF, SCENARIOS, Run
from tests.golden.simulated import Simulated
from tests.golden.targets import Address, Target


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    # The scenarios' records are older than the default retention.ms, which must not remove them.
    with embedlog.open(
        log_initial_task_delay_ms=3_600_000, embedlog_auto_create_topics_await=False
    ) as cluster:
        yield cluster.listen("127.0.0.1", 0).address


@functools.cache
def recorded(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return steps


def broker_for(
    name: str, request: pytest.FixtureRequest
) -> contextlib.AbstractContextManager[Target]:
    """Return a listening broker for all plain scenarios, or a simulated one for a
    single scenario.
    """
    if BROKER_OF[name] == PLAIN:
        return contextlib.nullcontext(Address(request.getfixturevalue("address")))
    settings = {"group.initial.rebalance.delay.ms": "0", **BROKERS[BROKER_OF[name]]}
    return contextlib.closing(Simulated(settings))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_embedlog_answers_as_kafka_does(name: str, request: pytest.FixtureRequest) -> None:
    expected = recorded(name)
    with broker_for(name, request) as target:
        run = Run(target, name)
        try:
            SCENARIOS[name](run)
        finally:
            run.close()
            # Even if the play failed: an earlier difference is probably the reason.
            unlisted = list(differences(name, expected, run.steps, DIFFERENCES))
            if unlisted:
                pytest.fail(f"{len(unlisted)} differences\n" + "\n".join(unlisted))
    assert [title(step) for step in run.steps] == [title(step) for step in expected]


def test_every_scenario_is_recorded_and_there_are_enough() -> None:
    files = {path.stem for path in RECORDED.glob("*.json")}
    assert files == set(SCENARIOS)
    assert sum(len(recorded(name)) for name in SCENARIOS) >= 6000


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.scenario} {row.path}")
def test_each_listed_difference_names_a_place_and_a_reason(row: Difference) -> None:
    assert len(row.reason) > 20
    assert any(
        row.covers(name, title(step), path)
        for name in SCENARIOS
        for step in recorded(name)
        if row.covers_step(name, title(step))
        for path in places(step["answer"])
    ), "nothing that Kafka answered is covered by this row"
