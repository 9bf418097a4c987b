"""One story: every client copies in transactions while three brokers fail; then a check.

The copiers are the same as in `tests.interop.chains`: exactly once from one topic to another, with
the position committed in the transaction. `tell_of_streams` has plain producers and group members
in their place (`streams.py`). The programs are not killed; each second, from a seed,

    a broker is killed, or loses its power, and starts again a moment later
    all leaders move to another broker
    a broker is cut off from the others and the controller for a moment
    a broker is paused for a moment

Faults come one at a time, so that two of three replicas run. At the end all brokers are well.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import embedlog
from embedlog import Cluster
from embedlog.cluster.faults.network import CONTROLLER
from embedlog.errors import KafkaError
from tests.interop.chains.story import (
    COUNT,
    SETTINGS,
    SOURCE,
    Commands,
    Program,
    check,
    fill,
    wait_for,
)
from tests.interop.cluster.streams import Programs, begin, end

FAILING_S = 15.0
BETWEEN_S = 1.0
DOWN_S = (0.1, 0.8)
IN_SYNC_S_MAX = 60
FAST = {
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class Story(NamedTuple):
    """The outcome of one story."""

    faults: Counter[str]
    failed_copiers: int
    stuck_copiers: Counter[str]
    broken: list[str]


def tell(
    seed: int,
    folder: Path,
    commands: Commands,
    names: Sequence[str] = (),
    seconds: float = FAILING_S,
) -> Story:
    """Play the story of `seed` with the copiers `names`, by default all."""
    chance = random.Random(seed)
    wanted = list(names or commands.copiers)
    config = {**dict(each.split("=") for each in SETTINGS), **FAST}
    with embedlog.open(folder / "data", brokers=3, config=config, durability="os") as cluster:
        address = cluster.listen().address
        fill(address, wanted, replicas=3)
        copiers = {
            name: Program(
                [*commands.copiers[name], address, SOURCE, name, str(COUNT)],
                commands.environment,
                folder / f"{name}.log",
            )
            for name in wanted
        }
        try:

            def watch() -> None:
                for copier in copiers.values():
                    _ = copier.is_done  # a failed copier is restarted

            faults = _fail(chance, cluster, seconds, watch)
            broken, stuck = wait_for(address, copiers)
            failed = sum(copier.failures for copier in copiers.values())
            broken += [text for name in wanted for text in check(address, name)]
            return Story(faults, failed, stuck, broken)
        finally:
            for copier in copiers.values():
                copier.kill()


def tell_of_streams(
    seed: int,
    folder: Path,
    programs: Programs,
    names: Sequence[str] = (),
    seconds: float = FAILING_S,
) -> Story:
    """Play the story of `seed` with plain producers and group members."""
    wanted = list(names or programs.commands)
    with embedlog.open(folder / "data", brokers=3, config=FAST, durability="os") as cluster:
        streams = begin(cluster, wanted, programs, folder)
        try:
            faults = _fail(random.Random(seed), cluster, seconds, lambda: None)
            broken = end(streams)
            broken += [f"{each.name}: nothing was written" for each in streams if each.is_empty]
            errors = [text for stream in streams for text in stream.errors]
            return Story(faults, len(errors), Counter(), broken + errors)
        finally:
            for stream in streams:
                stream.kill()


def _fail(
    chance: random.Random, cluster: Cluster, seconds: float, watch: Callable[[], None]
) -> Counter[str]:
    faults: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(BETWEEN_S)
        watch()
        faults[break_one(chance, cluster)] += 1
    return faults


def break_one(chance: random.Random, cluster: Cluster) -> str:
    """Wait until all is well, bring one fault, and return its name; all brokers run again then."""
    wait_until_in_sync(cluster)
    fault = chance.choice(("kill", "power", "move", "cut off", "pause"))
    node = cluster.broker(chance.choice((1, 2, 3)))
    if fault in ("kill", "power"):
        node.kill(lose_unsynced=fault == "power")
        time.sleep(chance.uniform(*DOWN_S))
        node.start()
    elif fault == "move":
        _move_all(cluster, node.node_id)
    elif fault == "cut off":
        cluster.network.split({node.node_id}, {CONTROLLER, 1, 2, 3} - {node.node_id})
        time.sleep(chance.uniform(*DOWN_S))
        cluster.network.heal()
    else:
        node.pause()
        time.sleep(chance.uniform(*DOWN_S))
        node.resume()
    return fault


def wait_until_in_sync(cluster: Cluster) -> None:
    """Wait until every partition has all its replicas, so that the next fault does not hit the
    last.

    Raises:
        AssertionError: a replica is still missing after `IN_SYNC_S_MAX`.
    """
    deadline = time.monotonic() + IN_SYNC_S_MAX
    while late := _behind(cluster):
        assert time.monotonic() < deadline, late
        time.sleep(0.02)


def _behind(cluster: Cluster) -> list[str]:
    """Return the partitions that lack a replica in the metadata of any broker."""
    return [
        f"{topic.name}-{partition.partition}: {partition.isr}"
        for node in cluster.brokers
        for topic in list(node.core.image.topics_by_name.values())
        for partition in topic.partitions
        if len(partition.isr) < len(partition.replicas)
    ]


def _move_all(cluster: Cluster, node_id: int) -> None:
    for topic in list(cluster.broker(node_id).core.image.topics_by_name.values()):
        for partition in topic.partitions:
            try:
                cluster.partition(topic.name, partition.partition).move_to(node_id)
            except KafkaError:
                continue  # it leads already, or is not in sync
