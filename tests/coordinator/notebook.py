"""A coordinator that only stores numbers: it shows the runtime without any group's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld, ShardContext
from embedlog.errors import KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.replication.partition import Partition
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime
from tests.controller.made_topics import create_topic
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue

TOPIC = "__consumer_offsets"
WAIT_MS = 60_000


def note(name: str, number: int | None) -> CoordinatorRecord:
    """Return the record that stores `number` under `name`; None deletes it."""
    key = OffsetCommitKey(topic=name)
    return CoordinatorRecord(key, None if number is None else OffsetCommitValue(offset=number), 3)


class Notebook:
    """A shard: the numbers of its records, by name."""

    def __init__(self, context: ShardContext) -> None:
        self.context = context
        self.notes: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.offsets: list[int] = []
        self.is_loaded = False
        self.ended_with: KafkaError | None = None

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        self.offsets.append(offset)
        name = record.key.topic
        if record.value is None:
            self.notes.pop(name, None)
        elif producer_id >= 0:
            self.pending.setdefault(producer_id, {})[name] = record.value.offset
        else:
            self.notes[name] = record.value.offset

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        found = self.pending.pop(producer_id, {})
        if is_committed:
            self.notes.update(found)

    def loaded(self) -> None:
        self.is_loaded = True

    def unloaded(self, error: KafkaError) -> None:
        self.ended_with = error


class Rig:
    """A runtime of notebooks over the offsets topic of a simulated cluster."""

    def __init__(self, cluster: Cluster, runtime: SimRuntime) -> None:
        self.cluster = cluster
        self.runtime = runtime
        self.manager = cluster.broker().core.replica_manager
        controller = cluster.broker().core.controller
        if TOPIC not in controller.image.topics_by_name:
            create_topic(
                controller, TOPIC, partition_count=3, configs={"cleanup.policy": "compact"}
            )
        self.shards: list[Notebook] = []
        self._timer = Timer(runtime.clock, runtime.scheduler.notify)
        runtime.scheduler.add(self._timer)
        purgatory = DelayedOperationPurgatory("Test", self._timer)
        world = CoordinatorWorld(
            runtime,
            cluster.config,
            lambda: controller.image,
            timer=self._timer,
            join_purgatory=purgatory,
            heartbeat_purgatory=purgatory,
        )
        self.coordinator: CoordinatorRuntime[Notebook] = CoordinatorRuntime(
            world,
            self.manager,
            cluster.broker().core.log_manager,
            topic=TOPIC,
            record_format=RecordFormat(GROUP_RECORD_TYPES),
            make_shard=self._make,
            commit_timeout_ms=5000,
        )

    def _make(self, context: ShardContext) -> Notebook:
        self.shards.append(Notebook(context))
        return self.shards[-1]

    @property
    def partition(self) -> Partition:
        return self.manager.partition(TOPIC, 0)

    def write(self, *records: CoordinatorRecord, index: int = 0, **how: Any) -> Pending[str]:
        """Write these records; the answer is "done"."""
        return self.coordinator.write(index, lambda _shard: Result(records, "done", **how))

    def notes(self, index: int = 0) -> Pending[dict[str, int]]:
        """Read the notebook."""
        return self.coordinator.read(index, lambda shard: dict(shard.notes))

    def wait(self, pending: Pending[Any]) -> Any:
        """Return the answer, however long it takes."""
        assert self.runtime.scheduler.wait(pending, WAIT_MS)
        return pending.result()

    def run(self, operation: Callable[[Notebook], Result[Any]]) -> Any:
        """Run an operation on the first notebook; return its answer."""
        return self.wait(self.coordinator.write(0, operation))

    def pass_time(self, delay_ms: int) -> None:
        self.runtime.scheduler.run_for(delay_ms)
