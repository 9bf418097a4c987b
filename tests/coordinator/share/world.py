"""A simulated broker with a topic, and requests about the state of its share partitions."""

from __future__ import annotations

from typing import Any

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.controller.config_changes import SET
from embedlog.controller.metadata import RESOURCE_TOPIC
from embedlog.coordinator.records import SHARE_RECORD_TYPES, RecordFormat
from embedlog.coordinator.share.share_shard import ShareShard
from embedlog.replication.partition import Partition
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.topic_names import SHARE_STATE_TOPIC
from tests.golden import share_state_requests as requests
from wire.records import iter_batches
from wire.registry import stable_versions
from wire.schema import declaration

TOPIC = "orders"
WAIT_MS = 60_000
ONE_PARTITION = {"share.coordinator.state.topic.num.partitions": 1}

_FORMAT = RecordFormat(SHARE_RECORD_TYPES)


class World:
    """One broker with a topic of three partitions, used by one test alone."""

    def __init__(
        self, path: str | None = None, runtime: SimRuntime | None = None, **settings: Any
    ) -> None:
        self.runtime = runtime or sim_runtime(seed=5)
        config = {**ONE_PARTITION, **settings.pop("config", {})}
        self.cluster = Cluster(path, runtime=self.runtime, config=config, **settings)
        self.core = self.cluster.broker().core
        assert topics.ensure_internal_topic(self.core, SHARE_STATE_TOPIC)
        if TOPIC not in self.cluster.topics:
            self.cluster.create_topic(TOPIC, 3)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.close()

    @property
    def topic_id(self) -> bytes:
        return self.core.image.topics_by_name[TOPIC].topic_id

    @property
    def log(self) -> Partition:
        """The only partition of `__share_group_state`."""
        return self.core.replica_manager.partition(SHARE_STATE_TOPIC, 0)

    def ask(self, request: Any) -> Any:
        """Return the row of the only share partition of a request."""
        (topic,) = self.ask_all(request).results
        (row,) = topic.partitions
        return row

    def ask_all(self, request: Any) -> Any:
        """Return the answer to a request at its newest version."""
        api_key = declaration(type(request)).api
        assert api_key is not None
        context = RequestContext(api_key, stable_versions(api_key)[1])
        answer = self.core.handle(context, request)
        return self.wait(answer) if isinstance(answer, Pending) else answer

    def wait(self, pending: Pending[Any]) -> Any:
        """Return the answer, however long it takes."""
        assert self.runtime.scheduler.wait(pending, WAIT_MS)
        return pending.result()

    def shards(self) -> list[ShareShard]:
        """Return the loaded shards."""
        return self.core.share_coordinator.runtime.loaded()

    def load(self) -> None:
        """Load the shards that have a log."""
        for pending in self.core.share_coordinator.runtime.read_all(lambda _shard: None):
            self.wait(pending)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; the coordinator may learn of it later."""
        self.core.controller.delete_topic(self.core.image.topics_by_name[name].topic_id)

    def set_cleanup_policy(self, policy: str) -> None:
        """Change the setting of `__share_group_state`."""
        self.core.controller.alter_configs(
            RESOURCE_TOPIC, SHARE_STATE_TOPIC, [(SET, "cleanup.policy", policy)]
        )

    def let_pass(self, delay_ms: int) -> None:
        """Let simulated time pass."""
        self.runtime.scheduler.run_for(delay_ms)

    def initialize(self, group: str = "g", **fields: Any) -> int:
        return int(self.ask(requests.initialize(group, self.topic_id, **fields)).error_code)

    def write(self, *batches: requests.Batch, group: str = "g", **fields: Any) -> int:
        return int(self.ask(requests.write(group, self.topic_id, *batches, **fields)).error_code)

    def read(self, group: str = "g", **fields: Any) -> Any:
        return self.ask(requests.read(group, self.topic_id, **fields))

    def summary(self, group: str = "g", **fields: Any) -> Any:
        return self.ask(requests.summary(group, self.topic_id, **fields))

    def delete(self, group: str = "g", **fields: Any) -> int:
        return int(self.ask(requests.delete(group, self.topic_id, **fields)).error_code)

    def batches(self, group: str = "g", **fields: Any) -> list[requests.Batch]:
        """Return the stored batches."""
        return [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in self.read(group, **fields).state_batches
        ]

    def records(self) -> list[tuple[int, Any, Any]]:
        """Return (offset, key, value) of the stored records."""
        log = self.log.log
        start, end = log.offsets.log_start_offset, log.log_end_offset
        if start == end:
            return []
        data = log.reader.read(start, max_bytes=1 << 24, end_offset=end).records
        found = []
        for batch in iter_batches(data):
            for record in batch.records():
                assert record.key is not None
                decoded = _FORMAT.decode(record.key, record.value)
                assert decoded is not None
                if record.offset >= start:
                    found.append((record.offset, decoded.key, decoded.value))
        return found
