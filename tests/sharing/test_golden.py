"""The leader of a share partition answers as Apache Kafka 4.4.0 does, over a state in memory."""

from __future__ import annotations

import contextlib

import pytest

import tests.golden.scenarios  # noqa: F401  (registers them)
from tests.golden.brokers import BROKERS
from tests.golden.compare import differences, title
from tests.golden.differences import DIFFERENCES
from tests.golden.run import BROKER_OF, SCENARIOS, Run
from tests.golden.scenarios import (
    sharing_acknowledgements,
    sharing_deliveries,
    sharing_failures,
    sharing_sessions,
)
from tests.golden.test_golden import recorded
from tests.golden.three_brokers import differences as of_three
from tests.golden.three_brokers import test_three_brokers as three
from tests.golden.three_brokers.clusters import KINDS
from tests.golden.three_brokers.run import KIND_OF, ClusterRun
from tests.golden.three_brokers.run import SCENARIOS as SCENARIOS_OF_THREE
from tests.golden.three_brokers.scenarios import share_leaders
from tests.sharing.golden_target import SimulatedLeader, SimulatedLeaders

MODULES = (sharing_acknowledgements, sharing_deliveries, sharing_failures, sharing_sessions)
NAMES = sorted(
    name
    for name, function in SCENARIOS.items()
    if function.__module__ in [module.__name__ for module in MODULES]
)


@pytest.mark.parametrize("name", NAMES)
def test_a_leader_answers_as_kafka_does(name: str) -> None:
    expected = recorded(name)
    settings = {"group.initial.rebalance.delay.ms": "0", **BROKERS[BROKER_OF[name]]}
    with contextlib.closing(SimulatedLeader(settings)) as target:
        run = Run(target, name)
        try:
            SCENARIOS[name](run)
        finally:
            run.close()
            unlisted = list(differences(name, expected, run.steps, DIFFERENCES))
            if unlisted:
                pytest.fail(f"{len(unlisted)} differences\n" + "\n".join(unlisted))
    assert [title(step) for step in run.steps] == [title(step) for step in expected]


@pytest.mark.parametrize(
    "name",
    [n for n, f in SCENARIOS_OF_THREE.items() if f.__module__ == share_leaders.__name__],
)
def test_leaders_of_three_brokers_answer_as_those_of_kafka_do(name: str) -> None:
    expected = three.recorded(name)
    with contextlib.closing(SimulatedLeaders(KINDS[KIND_OF[name]])) as target:
        cluster = ClusterRun(target, name)
        try:
            SCENARIOS_OF_THREE[name](cluster)
        finally:
            cluster.close()
            unlisted = list(differences(name, expected, cluster.steps, of_three.DIFFERENCES))
            if unlisted:
                pytest.fail(f"{len(unlisted)} differences\n" + "\n".join(unlisted))
    assert [title(step) for step in cluster.steps] == [title(step) for step in expected]
