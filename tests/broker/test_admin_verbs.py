"""All admin calls about one topic, by several threads at once, return."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import AlterOperation, ConfigResource, KafkaError, OffsetSpec, ResourceType
from embedlog.client.admin.admin import Admin
from embedlog.errors import TimedOut

THREADS = 4
ROUNDS = 40
SECONDS_MAX = 100
TOPIC = ConfigResource(ResourceType.TOPIC, "t")
BROKER = ConfigResource(ResourceType.BROKER, "")

Verb = Callable[[Admin, random.Random], object]


def _set(resource: ConfigResource, name: str, value: object) -> dict[ConfigResource, object]:
    return {resource: {name: (AlterOperation.SET, str(value))}}


VERBS: dict[str, Verb] = {
    "create": lambda admin, _: admin.create_topics({"t": 2}),
    "delete": lambda admin, _: admin.delete_topics(["t"]),
    "partitions": lambda admin, chance: admin.create_partitions({"t": chance.randrange(1, 9)}),
    "records": lambda admin, chance: admin.delete_records({("t", 0): chance.randrange(30)}),
    "retention": lambda admin, chance: admin.incremental_alter_configs(
        _set(TOPIC, "retention.ms", chance.randrange(10**9, 10**12))
    ),
    "policy": lambda admin, chance: admin.incremental_alter_configs(
        _set(TOPIC, "cleanup.policy", chance.choice(["delete", "compact", "compact,delete"]))
    ),
    "durability": lambda admin, chance: admin.incremental_alter_configs(
        _set(TOPIC, "embedlog.durability", chance.choice(["os", "fsync"]))
    ),
    "broker": lambda admin, chance: admin.incremental_alter_configs(
        _set(BROKER, "log.retention.ms", chance.randrange(10**9, 10**12))
    ),
    "offsets": lambda admin, _: admin.list_offsets({("t", 0): OffsetSpec.EARLIEST}, timeout_ms=100),
    "describe": lambda admin, _: admin.describe_topics(["t"]),
    "configs": lambda admin, _: admin.describe_configs([TOPIC]),
    "directories": lambda admin, _: admin.describe_log_dirs(),
}


def _ask(target: object, verbs: dict[str, Verb], seed: int, done: list[str]) -> None:
    chance = random.Random(seed)
    with embedlog.Admin(target) as admin:  # type: ignore[arg-type]
        for _ in range(ROUNDS):
            name = chance.choice(list(verbs))
            # Another thread may have deleted the topic already.
            with contextlib.suppress(KafkaError, TimedOut):
                asked: Any = verbs[name](admin, chance)
                asked.check()
            done.append(name)


def _all_end(works: list[Callable[[], None]]) -> None:
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=[work], daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    if raised:
        raise raised[0]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_all_verbs_at_once_in_process_and_over_tcp(durability: str, tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability=durability) as cluster:
        cluster.create_topic("t", 2)
        listener = cluster.listen("127.0.0.1", 0)
        done: list[str] = []

        def produce() -> None:
            # While the topic is deleted, a record has no partition until its timeout.
            limits = {"delivery_timeout_ms": 1000, "request_timeout_ms": 500, "max_block_ms": 1000}
            with cluster.producer(**limits) as producer:
                for _ in range(ROUNDS):
                    with contextlib.suppress(KafkaError, TimedOut):
                        producer.send("t", b"value").result(2000)
                    done.append("produce")

        targets = [cluster, listener.address]
        _all_end(
            [
                lambda seed=seed: _ask(targets[seed % 2], VERBS, seed, done)  # type: ignore[misc]
                for seed in range(THREADS)
            ]
            + [produce]
        )
        assert len(done) == (THREADS + 1) * ROUNDS


@pytest.mark.slow
@pytest.mark.parametrize("other", ["retention", "partitions", "broker"])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_records_are_deleted_while_settings_change(
    durability: str, other: str, tmp_path: Path
) -> None:
    with embedlog.open(tmp_path / "data", durability=durability) as cluster:
        cluster.create_topic("t", 1)
        with cluster.producer() as producer:
            for _ in range(ROUNDS):
                producer.send("t", b"value")
        done: list[int] = []

        def delete() -> None:
            with cluster.admin() as admin:
                for offset in range(1, ROUNDS):
                    admin.delete_records({("t", 0): offset}).check()
                    done.append(offset)

        def change() -> None:
            _ask(cluster, {other: VERBS[other]}, 1, [])

        _all_end([delete, change])
        assert done == list(range(1, ROUNDS))
