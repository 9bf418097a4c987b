"""A broker that goes down in each phase of a rebalance, and members that return to it."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.runtime.randomness import seeded
from embedlog.testing import SimFiles, sim_runtime
from tests.apis.conftest import InProcess
from tests.apis.groups import GROUP, SESSION_MS, form_pair, heartbeat, join, sync


def opened(files: SimFiles | None = None, seed: int = 1) -> InProcess:
    """Open a cluster on that disk, with new ids as another process would have."""
    runtime = sim_runtime(seed, files=files)
    config = {"group.initial.rebalance.delay.ms": 0}
    return InProcess(Cluster("data", config, runtime=runtime, durability="fsync"))


def answered(answer: Any) -> Any:
    assert answer.done()
    return answer.result()


def down(client: InProcess, how: str) -> SimFiles:
    """End the broker, in order or by a loss of power; return its disk."""
    files: SimFiles = client.cluster.runtime.files  # type: ignore[assignment]
    if how == "closed":
        client.cluster.close()
        return files
    image: SimFiles = next(iter(files.crash_images(seeded(7), 1)))
    return image


@pytest.mark.parametrize("how", ["closed", "crashed"])
@pytest.mark.parametrize("phase", ["first join", "join", "before sync", "sync", "stable"])
def test_members_come_back_whatever_the_phase(phase: str, how: str) -> None:
    client = opened()
    leader = client.call(join(version=3), 3).member_id
    generation_id, follower = 1, ""
    if phase != "first join":
        assert client.call(sync(leader, 1, {leader: b"1"})).assignment == b"1"
        joining = client.another().send(join(version=3), 3)
        if phase != "join":
            generation_id = client.call(join(leader)).generation_id
            follower = answered(joining).member_id
        if phase == "sync":
            assert not client.another().send(sync(follower, 2)).done()
        if phase == "stable":
            client.call(sync(leader, 2, {leader: b"A", follower: b"B"}))

    later = opened(down(client, how), seed=2)
    heard = later.call(heartbeat(leader, generation_id)).error_code
    if phase == "stable":
        assert heard == later.call(heartbeat(follower, 2)).error_code == 0
        assert later.call(sync(follower, 2)).assignment == b"B"
    elif phase == "join":
        assert heard == 0  # the last generation is stored: it goes on
    else:
        # A generation that was not stored is unknown: the members join again, as after any expiry.
        assert heard == (25 if phase == "first join" else 22)
        is_new = phase == "first join"
        assert _rejoined(later, "" if is_new else leader) == (1 if is_new else 2)
    later.cluster.close()


def _rejoined(client: InProcess, leader: str) -> int:
    version = 9 if leader else 3
    joined = client.call(join(leader, version=version), version)
    assert joined.error_code == 0
    member_id = joined.member_id
    answer = client.call(sync(member_id, joined.generation_id, {member_id: b"again"}))
    assert (answer.error_code, answer.assignment) == (0, b"again")
    generation_id: int = joined.generation_id
    return generation_id


def test_whoever_does_not_come_back_is_forgotten() -> None:
    client = opened()
    leader, follower = form_pair(client, client.another())
    client.call(sync(leader, 2, {leader: b"A", follower: b"B"}))
    later = opened(down(client, "crashed"), seed=2)
    assert later.call(heartbeat(follower, 2)).error_code == 0  # loads the group
    later.cluster.runtime.scheduler.run_for(SESSION_MS - 1)  # type: ignore[attr-defined]
    assert later.call(heartbeat(follower, 2)).error_code == 0
    later.cluster.runtime.scheduler.run_for(1)  # type: ignore[attr-defined]
    assert later.call(heartbeat(follower, 2)).error_code == 27
    joined = later.call(join(follower))
    assert (joined.generation_id, joined.leader) == (3, follower)
    assert [m.member_id for m in joined.members] == [follower]
    later.cluster.close()


def test_a_static_member_finds_its_assignment_after_both_have_restarted() -> None:
    client = opened()
    former = client.call(join(instance_id="i")).member_id
    client.call(sync(former, 1, {former: b"A"}, group_instance_id="i"))
    later = opened(down(client, "crashed"), seed=2)
    joined = later.call(join(instance_id="i"))
    assert (joined.generation_id, joined.skip_assignment) == (1, True)
    answer = later.call(sync(joined.member_id, 1, group_instance_id="i"))
    assert answer.assignment == b"A"
    assert later.call(heartbeat(former, 1, group_instance_id="i")).error_code == 82
    later.cluster.close()


def test_an_assignment_is_answered_once_it_is_on_the_disk() -> None:
    """At the level fsync a crash right after the leader's answer loses nothing."""
    client = opened()
    leader, follower = form_pair(client, client.another())
    waiting = client.another().send(sync(follower, 2))
    client.call(sync(leader, 2, {leader: b"A", follower: b"B"}))
    assert answered(waiting).assignment == b"B"
    files: SimFiles = client.cluster.runtime.files  # type: ignore[assignment]
    for image in files.crash_images(seeded(3), 8):
        later = opened(image, seed=2)
        assert later.call(sync(follower, 2)).assignment == b"B"
        partition = later.broker.group_coordinator.partition_for(GROUP)
        read: Pending[Any] = later.broker.group_coordinator.runtime.read(
            partition, lambda shard: shard.groups[GROUP].state_name()
        )
        assert read.result() == "Stable"
        later.cluster.close()
