"""Tests in simulated time: seeds decide, repeat and are reported; waits cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import pytest

import embedlog
from embedlog.errors import ConfigError
from embedlog.testing import SimulatedKafka, simulate


def test_the_function_runs_once_a_seed_and_time_passes_at_no_cost() -> None:
    seen: list[int] = []

    short = {"partitions": 1, "config": {"retention.ms": 1_000, "segment.ms": 1_000}}

    @simulate(seeds=3, first=10, topics={"orders": short})
    def run(kafka: SimulatedKafka) -> None:
        seen.append(kafka.seed)
        kafka.producer().send("orders", b"x").result()
        begin = kafka.now_ms
        kafka.sleep(3_600_000)
        assert kafka.now_ms - begin == 3_600_000
        consumer = kafka.consumer(group_id="g", auto_offset_reset="earliest")
        consumer.subscribe(["orders"])
        assert not consumer.poll(5_000), "retention has not removed the record"

    run()  # type: ignore[call-arg]
    assert seen == [10, 11, 12]


def racing(kafka: SimulatedKafka) -> list[int]:
    """Two writers append their numbers to one topic; return the order."""

    def write(number: int) -> Iterator[int]:
        producer = kafka.producer()
        for _ in range(5):
            producer.send("orders", b"%d" % number, partition=0).result()
            yield kafka.random.below(3)

    kafka.run(write(1), write(2))  # type: ignore[arg-type]
    consumer = kafka.consumer(auto_offset_reset="earliest")
    consumer.assign([("orders", 0)])
    found: list[int] = []
    while len(found) < 10:
        found.extend(int(each.value) for each in consumer.poll(1_000))
    return found


def test_a_seed_decides_the_turns_of_actors_and_repeats_them() -> None:
    orders: dict[int, list[int]] = {}

    @simulate(seeds=6, topics={"orders": 1})
    def run(kafka: SimulatedKafka) -> None:
        order = racing(kafka)
        assert sorted(order) == [1] * 5 + [2] * 5
        assert orders.setdefault(kafka.seed, order) == order

    run()  # type: ignore[call-arg]
    run()  # type: ignore[call-arg]
    assert len({tuple(each) for each in orders.values()}) > 2


def test_results_of_actors_are_returned_in_order() -> None:
    def after(delay_ms: int, result: str) -> Any:
        yield delay_ms
        return result

    with SimulatedKafka(seed=1) as kafka:
        assert kafka.run(after(50, "late"), after(5, "early")) == ["late", "early"]
        assert kafka.now_ms >= 50


def test_the_failing_seed_is_reported_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    @simulate(seeds=5)
    def run(kafka: SimulatedKafka) -> None:
        seen.append(kafka.seed)
        assert kafka.seed != 2

    with pytest.raises(AssertionError) as failure:
        run()  # type: ignore[call-arg]
    (note,) = failure.value.__notes__
    assert note.startswith("simulated with seed 2; again: EMBEDLOG_SEED=2")
    monkeypatch.setenv("EMBEDLOG_SEED", "2")
    with pytest.raises(AssertionError):
        run()  # type: ignore[call-arg]
    assert seen == [0, 1, 2, 2]
    monkeypatch.setenv("EMBEDLOG_SEED", "two")
    with pytest.raises(ConfigError, match="EMBEDLOG_SEED='two' is no seed"):
        run()  # type: ignore[call-arg]


def test_several_brokers_elect_a_leader_in_simulated_time() -> None:
    @simulate(seeds=2, brokers=3, topics={"orders": {"partitions": 1, "replication_factor": 3}})
    def run(kafka: SimulatedKafka) -> None:
        producer = kafka.producer()
        producer.send("orders", b"x").result()
        leader = kafka.partition("orders", 0).leader
        kafka.broker(leader).kill()
        producer.send("orders", b"y").result()
        assert kafka.partition("orders", 0).leader != leader

    run()  # type: ignore[call-arg]


@simulate(seeds=2)
@pytest.mark.parametrize("number", [1, 2])
def test_pytest_sees_the_other_arguments(kafka: SimulatedKafka, number: int) -> None:
    assert kafka.cluster.topics == []
    assert number


def test_wrong_uses_are_refused_at_the_decoration() -> None:
    with pytest.raises(ConfigError, match="with brackets"):
        simulate(lambda kafka: None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="expected at least 1"):
        simulate(seeds=0)
    with pytest.raises(ConfigError, match="did you mean 'brokers'"):
        simulate(broker=1)

    async def run(kafka: SimulatedKafka) -> None: ...

    with pytest.raises(ConfigError, match="has no event loop"):
        simulate()(run)


def test_a_simulation_has_no_address() -> None:
    @simulate(seeds=1)
    def run(kafka: SimulatedKafka) -> None:
        embedlog.Producer(kafka.bootstrap_servers)

    assert not signature(run).parameters
    with pytest.raises(ConfigError, match="has no address"):
        run()  # type: ignore[call-arg]
