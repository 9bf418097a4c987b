"""One partition of a log in memory, and its share partition for a group."""

from __future__ import annotations

from typing import Any

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.replication.partition import Isolation
from embedlog.sharing.acknowledgement import Acknowledgement
from embedlog.sharing.acquisition import BATCH_OPTIMIZED, Wish
from embedlog.sharing.dead_letters import DeadLetters
from embedlog.sharing.share_partition import SharePartition
from embedlog.sharing.share_sessions import ShareSession
from embedlog.sharing.sharing_context import SharingContext
from embedlog.testing import sim_runtime
from tests.sharing.memory_state import MemoryState
from wire.records.encode.builder import build_batch

GROUP = "group"
LOCK_MS = 30_000
MANY = 10_000


class World:
    """A broker under simulated time with one topic. Close it after use."""

    def __init__(self, **group_settings: str) -> None:
        self.runtime = sim_runtime(seed=1)
        self.cluster = Cluster(
            config={"log.initial.task.delay.ms": "3600000"}, runtime=self.runtime
        )
        self.topic = self.cluster.create_topic("t")
        self.core: Any = self.cluster.broker().core
        self.configure(**group_settings)
        self.state = MemoryState()
        self.place = (self.topic.topic_id, 0)
        self.state.initialize(GROUP, self.place)
        self.context = SharingContext(
            self.runtime,
            self.core.config,
            self.core.replica_manager,
            metadata=lambda: self.core.image,
            state=self.state,
        )
        self.partition = self.core.replica_manager.partition("t", 0)
        self.sessions: dict[str, ShareSession] = {}
        """Member -> its session."""
        self.share = self.load()

    def configure(self, **settings: str) -> None:
        """Set settings of the group, with underscores for dots."""
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        if dotted:
            self.cluster.admin().alter_configs({embedlog.ConfigResource("group", GROUP): dotted})

    @property
    def broker_resource(self) -> embedlog.ConfigResource:
        """The resource of the broker's settings."""
        return embedlog.ConfigResource("broker", str(self.core.node_id))

    def load(self) -> SharePartition:
        """Make the share partition and load it."""
        self.share = SharePartition(GROUP, self.partition, self.context, lambda _: None)
        self.share.load()
        return self.share

    def bury_with(self, ask: Any) -> None:
        """Write dead letters; `ask` sends their requests."""
        self.context.bury = DeadLetters(self.context, ask).bury

    def fill(self, *sizes: int | str) -> None:
        """Append batches of `sizes` records. A text has the records' keys; "-" is no key."""
        for size in sizes:
            letters = "-" * size if isinstance(size, int) else size
            keys = [None if letter == "-" else letter.encode() for letter in letters]
            self.append(build_batch([b"v"] * len(keys), keys=keys, timestamps=1_700_000_000_000))

    def append(self, batch: bytes) -> None:
        """Append a batch."""
        self.core.replica_manager.append(self.partition, batch, acks=-1)

    def wish(self, member: str = "one", **changes: int) -> Wish:
        """Return a wish for all records, by the settings of the group."""
        settings = self.context.settings(GROUP)
        wish = Wish(
            member_id=member,
            mode=BATCH_OPTIMIZED,
            record_count_max=MANY,
            batch_size=MANY,
            lock_count_max=settings.lock_count_max,
            delivery_limit=settings.delivery_limit,
            lock_duration_ms=settings.lock_duration_ms,
            is_ordered=settings.is_ordered,
        )
        return wish.replace(**changes)

    def acquire(
        self,
        member: str = "one",
        *,
        isolation: int = Isolation.HIGH_WATERMARK,
        **changes: int,
    ) -> list[tuple[int, int, int]]:
        """Acquire; return the ranges."""
        session = self.sessions.setdefault(member, ShareSession((GROUP, member), None))
        wish = self.wish(member, **changes)
        taken = self.share.acquire(session, wish, 1 << 20, isolation)
        return [] if taken is None else taken.acquired

    def say(self, member: str, first: int, last: int, *causes: int) -> Exception | None:
        """Acknowledge one batch; return the error, or None if it is stored."""
        try:
            pending = self.share.acknowledge(member, [Acknowledgement(first, last, causes)])
        except embedlog.EmbedlogError as error:
            return error
        assert pending.done(), "it waits"
        error = pending.error()
        assert error is None or isinstance(error, Exception)
        return error

    def stored(self) -> list[tuple[int, int, int, int]]:
        """Return the stored batches: first, last, state, count."""
        return [
            (row.first_offset, row.last_offset, row.delivery_state, row.delivery_count)
            for row in self.state.states[GROUP, self.place].batches
        ]

    def run_for(self, delay_ms: int) -> None:
        """Let time pass."""
        self.runtime.scheduler.run_for(delay_ms)

    def close(self) -> None:
        """Close the broker."""
        self.context.close()
        self.cluster.close()
