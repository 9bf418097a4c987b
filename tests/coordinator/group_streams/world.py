"""One shard of streams groups, simulated time, and obedient members."""

from __future__ import annotations

from typing import Any

from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.streams import request_checks
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.group.streams.streams_heartbeats import Answer
from tests.coordinator.consumer.world import GROUP, Log, World
from wire.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

SESSION_MS = 45_000
REBALANCE_MS = 10_000

Held = set[tuple[str, int]]


def topology(*sources: str, stateful: bool = True, epoch: int = 0) -> Topology:
    """Return a topology with a subtopology for each source, with a changelog if `stateful`."""
    parts = [
        Subtopology(
            subtopology_id=str(number),
            source_topics=[source],
            state_changelog_topics=[TopicInfo(name=f"{source}-changelog")] if stateful else [],
        )
        for number, source in enumerate(sources)
    ]
    return Topology(epoch=epoch, subtopologies=parts)


class StreamsWorld(World):
    """A `World` for streams groups; by default assignments are made at once."""

    def __init__(
        self, log: Log | None = None, *, like: StreamsWorld | None = None, **settings: object
    ) -> None:
        named = {
            "group_streams_assignment_interval_ms": 0,
            "group_streams_initial_rebalance_delay_ms": 0,
            **settings,
        }
        super().__init__(log, like=like, **named)

    def restarted(self, *, compacted: bool = False, **settings: object) -> StreamsWorld:
        """Return a shard that has loaded the records of this one."""
        return StreamsWorld(self._kept(compacted=compacted), like=self, **settings)

    def beat(
        self, member_id: str, epoch: int, *, group_id: str = GROUP, version: int = 1, **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """Send one StreamsGroupHeartbeat. Raises its error."""
        request = StreamsGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, **fields
        )
        request_checks.check(request)
        client = ClientIdentity.of("test", "10.0.0.1")
        self.answer: Answer = self.write(
            lambda shard: shard.streams_heartbeat(client, request, version)
        ).result()
        return self.answer.response

    def join(self, member_id: str, given: Topology, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Send the heartbeat of a joining member."""
        values: dict[str, Any] = {
            "process_id": member_id,
            "rebalance_timeout_ms": REBALANCE_MS,
            "topology": given,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            **fields,
        }
        return self.beat(member_id, 0, **values)

    def streams_group(self, group_id: str = GROUP) -> StreamsGroup:
        """Return the group."""
        found = self.shard.groups[group_id]
        assert isinstance(found, StreamsGroup), found
        return found

    def codes(self, response: StreamsGroupHeartbeatResponse) -> list[int]:
        return [row.status_code for row in response.status or ()]


class Streamer:
    """An obedient member: it takes the tasks that it gets, and reports the tasks that it has."""

    def __init__(self, world: StreamsWorld, member_id: str, given: Topology, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.topology = given
        self.fields = fields
        self.active: Held = set()
        self.standby: Held = set()
        self.closing: Held = set()
        """Active tasks that it closes before its next heartbeat."""
        self.epoch = 0
        self._learn(world.join(member_id, given, **fields))

    def beat(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Report the tasks, and take the answer's."""
        if self.fields.get("instance_id") is not None:
            fields.setdefault("instance_id", self.fields["instance_id"])
        self.closing = set()
        return self._learn(self.world.beat(self.member_id, self.epoch, **self.report(), **fields))

    def report(self) -> dict[str, list[TaskIds]]:
        """Return the fields that report the tasks."""
        return {
            "active_tasks": _rows(self.active),
            "standby_tasks": _rows(self.standby),
            "warmup_tasks": [],
        }

    def leave(self) -> None:
        """Leave the group."""
        self.world.beat(self.member_id, -1)

    def _learn(self, response: StreamsGroupHeartbeatResponse) -> StreamsGroupHeartbeatResponse:
        self.epoch = response.member_epoch
        if response.active_tasks is not None:
            before, self.active = self.active, _held(response.active_tasks)
            self.closing = before - self.active
            self.standby = _held(response.standby_tasks or [])
        return response


def _rows(held: Held) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=name, partitions=sorted(n for s, n in held if s == name))
        for name in sorted({name for name, _ in held})
    ]


def _held(rows: list[TaskIds]) -> Held:
    return {(row.subtopology_id, number) for row in rows for number in row.partitions}
