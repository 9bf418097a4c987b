"""embedlog answers as Apache Kafka 4.4.0 does, field by field; differences are listed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
import tests.golden.scenarios  # noqa: F401  (registers them)
from tests.golden.brokers import BROKERS, PLAIN
from tests.golden.differences import DIFFERENCES, Difference
from tests.golden.normal import SORT_KEYS
from tests.golden.record import RECORDED
from tests.golden.run import BROKER_OF, SCENARIOS, Run
from tests.golden.simulated import Simulated
from tests.golden.targets import Address, Target

MISSING = "<nothing>"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    # The scenarios' records are older than retention.ms: let it come after the last of them.
    with embedlog.open(
        log_initial_task_delay_ms=3_600_000, embedlog_auto_create_topics_await=False
    ) as cluster:
        yield cluster.listen("127.0.0.1", 0).address


def recorded(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())
    return steps


def differing(expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each place where two answers part: its path, the expected and the found value."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            yield from differing(
                expected.get(key, MISSING), found.get(key, MISSING), f"{path}.{key}"
            )
    elif isinstance(expected, list) and isinstance(found, list):
        ours, theirs = _by_name(found), _by_name(expected)
        for name in [*theirs, *(name for name in ours if name not in theirs)]:
            one, other = theirs.get(name, MISSING), ours.get(name, MISSING)
            yield from differing(one, other, f"{path}[{name}]")
    elif expected != found:
        yield path, expected, found


def _by_name(rows: list[Any]) -> dict[str, Any]:
    """Rows under the value of their first naming field; under their index when that is no name."""
    names = [next((str(row[key]) for key in SORT_KEYS if key in row), "") if isinstance(row, dict)
             else "" for row in rows]  # fmt: skip
    if "" in names or len(set(names)) < len(rows):
        names = [str(index) for index in range(len(rows))]
    return dict(zip(names, rows, strict=True))


def title(step: dict[str, Any]) -> str:
    return " ".join(str(step[key]) for key in ("api", "version", "note") if key in step)


def broker_for(
    name: str, request: pytest.FixtureRequest
) -> contextlib.AbstractContextManager[Target]:
    """The plain broker listens, for all its scenarios; others are made for one and simulated."""
    if BROKER_OF[name] == PLAIN:
        return contextlib.nullcontext(Address(request.getfixturevalue("address")))
    settings = {"group.initial.rebalance.delay.ms": "0", **BROKERS[BROKER_OF[name]]}
    return contextlib.closing(Simulated(settings))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_answers_as_kafka_does(name: str, request: pytest.FixtureRequest) -> None:
    expected = recorded(name)
    with broker_for(name, request) as target:
        run = Run(target, name)
        try:
            SCENARIOS[name](run)
        finally:
            run.close()
            # Also when the play broke off: what differs before that is likely to be the reason.
            unlisted = list(differences(name, expected, run.steps))
            if unlisted:
                pytest.fail(f"{len(unlisted)} differences\n" + "\n".join(unlisted))
    assert [title(step) for step in run.steps] == [title(step) for step in expected]


def differences(
    name: str, expected: list[dict[str, Any]], found: list[dict[str, Any]]
) -> Iterator[str]:
    """Each difference that no row lists, as text."""
    for one, other in zip(expected, found, strict=False):
        for path, kafka, ours in differing(one["answer"], other["answer"]):
            if not any(row.covers(name, title(one), path) for row in DIFFERENCES):
                yield f"{title(one)}\n    {path}: Kafka {kafka!r}, embedlog {ours!r}"


def test_every_scenario_is_recorded_and_there_are_enough() -> None:
    files = {path.stem for path in RECORDED.glob("*.json")}
    assert files == set(SCENARIOS)
    assert sum(len(recorded(name)) for name in SCENARIOS) >= 6000


def places(answer: Any, path: str = "") -> Iterator[str]:
    """The path of everything inside an answer."""
    yield path
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from places(value, f"{path}.{key}")
    elif isinstance(answer, list):
        for name, value in _by_name(answer).items():
            yield from places(value, f"{path}[{name}]")


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.scenario} {row.path}")
def test_each_listed_difference_names_a_place_and_a_reason(row: Difference) -> None:
    assert len(row.reason) > 20
    assert any(
        row.covers(name, title(step), path)
        for name in SCENARIOS
        for step in recorded(name)
        for path in places(step["answer"])
    ), "nothing that Kafka answered is covered by this row"
