"""Requests of classic members, and a group of them, for the tests of group APIs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from tests.apis.conftest import Client, InProcess
from wire.schemas.heartbeat import HeartbeatRequest
from wire.schemas.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from wire.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP = "g"
SESSION_MS = 10_000


def join(
    member_id: str = "", *, version: int = 9, instance_id: str | None = None, **fields: Any
) -> JoinGroupRequest:
    """Return a consumer's join, with the fields of the version."""
    said: dict[str, Any] = {
        "group_id": GROUP,
        "session_timeout_ms": SESSION_MS,
        "member_id": member_id,
        "group_instance_id": instance_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"r")],
    }
    if version >= 1:
        said["rebalance_timeout_ms"] = 60_000
    return JoinGroupRequest(**{**said, **fields})


def sync(
    member_id: str,
    generation_id: int,
    assignments: dict[str, bytes] | None = None,
    *,
    version: int = 5,
    **fields: Any,
) -> SyncGroupRequest:
    """Return a member's sync; the leader's has the assignments of all members."""
    said: dict[str, Any] = {
        "group_id": GROUP,
        "generation_id": generation_id,
        "member_id": member_id,
        "assignments": [
            SyncGroupRequestAssignment(member_id=name, assignment=assignment)
            for name, assignment in (assignments or {}).items()
        ],
    }
    if version >= 5:
        said.update(protocol_type="consumer", protocol_name="range")
    return SyncGroupRequest(**{**said, **fields})


def heartbeat(member_id: str, generation_id: int, **fields: Any) -> HeartbeatRequest:
    """Return a member's heartbeat."""
    said: dict[str, Any] = {
        "group_id": GROUP,
        "generation_id": generation_id,
        "member_id": member_id,
    }
    return HeartbeatRequest(**{**said, **fields})


class Simulated(InProcess):
    """A client in process that can let time pass."""

    def advance(self, delay_ms: int) -> None:
        """Let `delay_ms` pass."""
        self.cluster.runtime.scheduler.run_for(delay_ms)  # type: ignore[attr-defined]


@contextmanager
def simulated() -> Iterator[Simulated]:
    """A client of a cluster in memory, for tests that take minutes over any transport."""
    with Cluster(runtime=sim_runtime(seed=1)) as cluster:
        yield Simulated(cluster)


def form_alone(client: Client, **fields: Any) -> str:
    """Form a stable group of one member, in generation 1; return its id."""
    member_id: str = client.call(join(version=3, **fields), 3).member_id
    answer = client.call(sync(member_id, 1, {member_id: b"A"}))
    assert (answer.error_code, answer.assignment) == (0, b"A")
    return member_id


def form_pair(client: Client, other: Client) -> tuple[str, str]:
    """Join two members in generation 2, without a sync; return the leader's id first."""
    leader = form_alone(client)
    waiting = other.send(join(version=3), 3)
    wait_for_rebalance(client, leader, 1)
    assert client.call(join(leader)).generation_id == 2
    follower: str = waiting.result().member_id
    return leader, follower


def wait_for_rebalance(client: Client, member_id: str, generation_id: int) -> None:
    """Return once a heartbeat reports a rebalance."""
    while client.call(heartbeat(member_id, generation_id)).error_code != 27:
        assert not client.simulates_time, "it should have begun at once"
