"""Brokers with two log directories: replicas move between them during all other faults."""

from __future__ import annotations

import random

from embedlog.broker.context import RequestContext
from embedlog.broker.directory_keeper import MOVE_RATE
from tests.simulation.cluster.client import Place
from tests.simulation.cluster.story import Story
from tests.simulation.cluster.world import NODES
from tests.simulation.world import Life, Sleep
from wire.api_keys import ApiKey
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

DISK = "disk"
RATES = (300, 2000, 20_000)
"""Bytes a second of a move: from slow, with many events during a move, to fast."""
PAUSE_MS_MAX = 1500


class RelocationStory(Story):
    """A story in which replicas move; the moves have their own random numbers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, log_dirs=[DISK])
        self._chance = random.Random(seed)
        self.places: set[str] = set()
        """The places where a replica was seen."""
        rate = self._chance.choice(RATES)
        self._say(f"{rate} bytes a second may move")
        for node_id in NODES:
            self.world.cluster.broker(node_id).core.config.set_static(MOVE_RATE, str(rate))
        self.world.live(self._moves())

    def counts(self) -> dict[str, int]:
        """Return counts for the summary."""
        return {**super().counts(), "moves": sum("moves to" in each for each in self.told)}

    def _moves(self) -> Life:
        for _ in range(40):
            yield Sleep(self._chance.randrange(PAUSE_MS_MAX))
            self._move(self.place, self._chance.choice(NODES))

    def _move(self, place: Place, node_id: int) -> None:
        node = self.world.cluster.broker(node_id)
        if not node.is_running or node.is_paused:
            return
        manager = self._chance.choice(node.core.log_manager.managers)
        path, (topic, index) = manager.directory.path, place
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
                )
            ]
        )
        node.core.handle(RequestContext(ApiKey.ALTER_REPLICA_LOG_DIRS, 2), request)
        self._say(f"the replica of {node_id} moves to {path}")
