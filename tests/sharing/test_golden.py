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
from tests.sharing.golden_target import SimulatedLeader

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
