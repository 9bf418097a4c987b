"""Three brokers of embedlog answer as three of Apache Kafka 4.4.0 do, field by field."""

from __future__ import annotations

import contextlib
import functools
import json
from typing import Any

import pytest

import tests.golden.three_brokers.scenarios  # noqa: F401  (registers them)
from tests.golden.compare import differences, places, title
from tests.golden.differences import Difference
from tests.golden.three_brokers.clusters import KINDS
from tests.golden.three_brokers.differences import DIFFERENCES
from tests.golden.three_brokers.record import RECORDED
from tests.golden.three_brokers.run import KIND_OF, SCENARIOS, ClusterRun
from tests.golden.three_brokers.simulated import SimulatedCluster

ANSWER_COUNT_MIN = 2000


@functools.cache
def recorded(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return steps


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_three_brokers_answer_as_three_of_kafka_do(name: str) -> None:
    expected = recorded(name)
    with contextlib.closing(SimulatedCluster(KINDS[KIND_OF[name]])) as target:
        cluster = ClusterRun(target, name)
        try:
            SCENARIOS[name](cluster)
        finally:
            cluster.close()
            # Even if the play failed: an earlier difference is probably the reason.
            unlisted = list(differences(name, expected, cluster.steps, DIFFERENCES))
            if unlisted:
                pytest.fail(f"{len(unlisted)} differences\n" + "\n".join(unlisted))
    assert [title(step) for step in cluster.steps] == [title(step) for step in expected]


def test_every_scenario_is_recorded_and_there_are_enough() -> None:
    files = {path.stem for path in RECORDED.glob("*.json")}
    assert files == set(SCENARIOS)
    answers = [step for name in SCENARIOS for step in recorded(name) if "api" in step]
    assert len(answers) >= ANSWER_COUNT_MIN


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
