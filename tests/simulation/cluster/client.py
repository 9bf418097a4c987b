"""The world from the view of a client, which finds brokers by itself and may be wrong.

It uses the leader or coordinator that some broker named, until a request fails. Then it asks a
random broker again.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.simulation.cluster.world import NODES, ClusterWorld
from tests.simulation.world import Ask
from wire.schema import Message
from wire.schemas.fetch import FetchRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from wire.schemas.produce import ProduceRequest
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

METADATA_VERSION = 12
COORDINATOR_VERSION = 4
LOOK_AGAIN_MS = 60

Place = tuple[str, int]
Key = tuple[str, Any]
"""A broker to look up: ("leader", place), ("group", id), ("transaction", id)."""


class Client:
    """The world of one actor."""

    def __init__(self, world: ClusterWorld) -> None:
        self.random: Random = world.random
        self.at = world.at
        self.leaders: dict[Place, tuple[int, int]] = {}
        """(leader, leader epoch) of partitions."""
        self._epochs: dict[Place, int] = {}
        """The newest leader epoch seen."""
        self._world = world
        self._coordinators: dict[Key, int] = {}

    @property
    def now(self) -> int:
        """The time of the world."""
        return self._world.now

    def ask(self, what: Ask, answered: Callable[[Any], None]) -> None:
        """Send a request to the leader or coordinator that it needs."""
        key = _key_of(what.request)
        node_id = self._known(key)
        if node_id is None:
            self.look_up(key, lambda: self.ask(what, answered))
            return

        def done(answer: Any) -> None:
            if answer is None or error_in(answer):
                self.forget(key)
            answered(answer)

        self._world.send(node_id, what, done)

    def send(self, node_id: int, what: Ask, answered: Callable[[Any], None]) -> None:
        """Send a request to this broker."""
        self._world.send(node_id, what, answered)

    def forget(self, key: Key) -> None:
        """Forget the broker of this key."""
        if key[0] == "leader":
            self.leaders.pop(key[1], None)
        self._coordinators.pop(key, None)

    def _known(self, key: Key) -> int | None:
        if key[0] == "any":
            return self.random.choice(NODES)
        if key[0] == "leader":
            known = self.leaders.get(key[1])
            return None if known is None else known[0]
        return self._coordinators.get(key)

    def look_up(self, key: Key, then: Callable[[], None]) -> None:
        """Ask random brokers until one names the broker of this key."""
        what = _question(key)

        def answered(answer: Any) -> None:
            if answer is not None and self._note(key, answer):
                then()
            else:
                self.at(LOOK_AGAIN_MS, lambda: self.look_up(key, then))

        self._world.send(self.random.choice(NODES), what, answered)

    def _note(self, key: Key, answer: Any) -> bool:
        if key[0] != "leader":
            (found,) = answer.coordinators
            if not found.error_code:
                self._coordinators[key] = found.node_id
            return not found.error_code
        topic, index = key[1]
        for found in answer.topics:
            for each in found.partitions:
                place = topic, each.partition_index
                # A broker with old metadata names the leader before the last election.
                if each.leader_epoch < self._epochs.get(place, -1):
                    continue
                if each.leader_id >= 0 and not each.error_code:
                    self._epochs[place] = each.leader_epoch
                    self.leaders[place] = each.leader_id, each.leader_epoch
        return (topic, index) in self.leaders


def _question(key: Key) -> Ask:
    if key[0] == "leader":
        topics = [MetadataRequestTopic(name=key[1][0])]
        request: Any = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return Ask(request, METADATA_VERSION)
    key_type = 1 if key[0] == "transaction" else 0
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key[1]])
    return Ask(request, COORDINATOR_VERSION)


def _key_of(request: Any) -> Key:
    """Return the key of a request. Requests of transactional producers have only one partition."""
    if isinstance(request, ProduceRequest):
        (topic,) = request.topic_data
        return "leader", (topic.name, topic.partition_data[0].index)
    if isinstance(request, FetchRequest | OffsetForLeaderEpochRequest):
        (found,) = request.topics
        return "leader", (found.topic, found.partitions[0].partition)
    if isinstance(request, ShareGroupHeartbeatRequest):
        return "group", request.group_id
    name = getattr(request, "v3_and_below_transactional_id", None)
    if "TxnOffsetCommit" in type(request).__name__:
        return "group", request.group_id
    if groups := getattr(request, "groups", None):
        return "group", groups[0].group_id
    name = name or getattr(request, "transactional_id", None)
    return ("transaction", name) if name else ("any", None)


def error_in(message: Any) -> int:
    """Return the first error code in an answer, 0 if there is none."""
    for field in type(message).__fields__:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            if value:
                return int(value)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for each in value:
                if code := error_in(each):
                    return code
    return 0
