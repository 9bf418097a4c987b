"""One consumer group: its members' commits, instance ids and processes."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.common import IN_PROCESS_HOST
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ClassicFacts, ConsumerMember
from embedlog.coordinator.group.group import ClientIdentity
from tests.coordinator.consumer.world import GROUP, World
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

TOPIC = b"t" * 16


def commit(group: ConsumerGroup, epoch: int) -> None:
    """Check a commit of partition 0 by the member m."""
    group.validate_offset_commit(
        "m", None, epoch, is_transactional=False, api_version=9, partitions=[(TOPIC, 0)]
    )


def group_of(classic: ClassicFacts | None) -> ConsumerGroup:
    """Make a group whose member m is at epoch 5, and got partition 0 at epoch 2."""
    group = ConsumerGroup("g")
    member = ConsumerMember(
        "m", epoch=5, previous_epoch=4, assigned={TOPIC: {0: 2}}, classic=classic
    )
    group.put_member(member)
    return group


def test_only_a_consumer_member_commits_at_an_earlier_epoch() -> None:
    commit(group_of(None), 3)
    classic = group_of(ClassicFacts(10_000, (("range", b""),)))
    commit(classic, 5)
    with pytest.raises(errors.IllegalGeneration):
        commit(classic, 3)


def test_an_instance_id_stays_its_successors() -> None:
    group = ConsumerGroup("g")
    for name in ("former", "successor"):
        group.put_member(ConsumerMember(name, instance_id="i"))
    group.drop_member("former")
    found = group.static_member("i")
    assert found is not None
    assert found.member_id == "successor"


@pytest.mark.parametrize(("host", "names"), [("127.0.0.1", ["m", "n"]), (IN_PROCESS_HOST, ["n"])])
def test_only_members_of_the_brokers_own_process_end_with_it(host: str, names: list[str]) -> None:
    world = World()
    world.make_topic("t", 2)
    world.join("n", "t")
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    client = ClientIdentity.of("test", host)
    world.write(lambda shard: shard.consumer_heartbeat(client, request, 1)).result()
    again = world.restarted()
    for result in again.shard.opened():
        again.write(lambda _, result=result: result)
    assert sorted(again.group().members) == names
