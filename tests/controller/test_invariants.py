"""Invariants that hold after any sequence of events of brokers and partitions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.features import ELIGIBLE_LEADER_REPLICAS, SAFE_DOWNGRADE
from embedlog.controller.metadata import (
    RESOURCE_TOPIC,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
)
from embedlog.errors import KafkaError
from tests.controller.metadata_state import Opened, plain
from tests.support import sizes

NODES = (1, 2, 3, 4)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = st.sampled_from(NODES)
SOME_NODES = st.lists(NODE, min_size=1, max_size=4, unique=True)


def register(opened: Opened, draw: Any) -> None:
    node_id = draw(NODE)
    known = opened.controller.image.brokers.get(node_id)
    previous = known.epoch if known is not None and draw(st.booleans()) else -1
    same = known is not None and draw(st.integers(0, 3)) == 0
    opened.controller.brokers.register(
        node_id,
        rack=None,
        incarnation=known.incarnation if known and same else opened.runtime.random.uuid(),
        previous_epoch=previous,
    )


def unfence(opened: Opened, draw: Any) -> None:
    node_id = draw(NODE)
    if node_id in opened.controller.image.brokers:
        opened.controller.brokers.unfence(node_id, opened.epoch(node_id))


def shut_down(opened: Opened, draw: Any) -> None:
    node_id = draw(NODE)
    if node_id in opened.controller.image.brokers:
        brokers = opened.controller.brokers
        led = brokers.begin_controlled_shutdown(node_id, opened.epoch(node_id))
        assert led == 0


def alter(opened: Opened, draw: Any) -> None:
    image = opened.controller.image
    number = draw(st.integers(0, 1))
    partition = image.topics_by_name["t"].partitions[number]
    if partition.leader < 0:
        return
    opened.controller.partitions.alter(
        partition.leader,
        opened.epoch(partition.leader),
        image.topics_by_name["t"].topic_id,
        number,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=[(partition.leader, -1)]
        + [(node, -1) for node in draw(SOME_NODES) if node != partition.leader],
        is_recovering=partition.is_recovering and draw(st.booleans()),
    )


def reassign(opened: Opened, draw: Any) -> None:
    replicas = draw(SOME_NODES | st.none())
    opened.controller.partitions.reassign("t", draw(st.integers(0, 1)), replicas)


def elect(opened: Opened, draw: Any) -> None:
    opened.controller.partitions.elect_leaders(draw(st.integers(0, 1)), None)


def configure(opened: Opened, draw: Any) -> None:
    name, text = draw(
        st.sampled_from(
            [
                ("min.insync.replicas", "1"),
                ("min.insync.replicas", "2"),
                ("min.insync.replicas", "3"),
                ("unclean.leader.election.enable", "true"),
                ("unclean.leader.election.enable", "false"),
            ]
        )
    )
    opened.controller.alter_configs(RESOURCE_TOPIC, "t", [(0, name, text)])


STEPS: list[Callable[[Opened, Any], object]] = [
    register,
    unfence,
    unfence,
    lambda opened, draw: opened.controller.brokers.fence(draw(NODE)),
    lambda opened, draw: opened.start(draw(NODE)),
    lambda opened, draw: opened.controller.brokers.unregister(draw(NODE)),
    shut_down,
    alter,
    alter,
    alter,
    reassign,
    elect,
    lambda opened, _: opened.controller.partitions.rebalance_leaders(),
    configure,
]


def check(image: MetadataImage) -> None:
    """Check one image."""
    for partition in image.topics_by_name["t"].partitions:
        replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
        active = {node for node in replicas if image.is_active(node)}
        assert len(replicas) == len(partition.replicas) > 0
        assert isr <= replicas, partition
        assert elr <= replicas, partition
        assert not isr & elr, partition
        assert {*partition.adding_replicas, *partition.removing_replicas} <= replicas
        if partition.leader >= 0:
            assert partition.leader in isr & active, partition
            assert isr <= active, partition
            assert partition.last_known_elr == ()
        else:
            # A replica that may lead does lead.
            assert not (isr or elr) & active, (partition, active)
        if not image.feature_level(ELIGIBLE_LEADER_REPLICAS):
            assert isr, partition


def check_change(before: PartitionImage, after: PartitionImage, *, is_told: bool) -> None:
    """Check a partition against its former image."""
    names = [name for name in before.__slots__ if getattr(before, name) != getattr(after, name)]
    assert is_told == bool(names), names
    assert after.partition_epoch == before.partition_epoch + bool(names), names
    loses = not set(before.replicas) <= set(after.replicas)
    assert after.leader_epoch == before.leader_epoch + (after.leader != before.leader or loses)


@pytest.mark.slow
@pytest.mark.parametrize("with_eligible", [True, False])
@settings(max_examples=sizes.size(40, full=100), deadline=None)
@given(st.data())
def test_whatever_happens(with_eligible: bool, data: st.DataObject) -> None:
    opened = Opened(node_ids=NODES)
    controller = opened.controller
    if not with_eligible:
        controller.update_features([(ELIGIBLE_LEADER_REPLICAS, 0, SAFE_DOWNGRADE)])
    controller.create_topics(
        [
            NewTopic(
                "t",
                assignments=[(0, [1, 2, 3]), (1, [3, 4, 1])],
                configs={"min.insync.replicas": "2"},
            )
        ]
    )
    seen = [controller.image]

    def heard(delta: MetadataDelta) -> None:
        check(delta.image)
        pairs = zip(
            seen[-1].topics_by_name["t"].partitions,
            delta.image.topics_by_name["t"].partitions,
            strict=True,
        )
        for told, (before, after) in zip((T0, T1), pairs, strict=True):
            check_change(before, after, is_told=told in delta.partitions_changed)
        # Each registration makes another image of its broker, even with equal fields.
        objects = [list(map(id, each.brokers.values())) for each in (seen[-1], delta.image)]
        assert delta.brokers_changed == (objects[0] != objects[1])
        seen.append(delta.image)

    controller.on_change = heard
    for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=30)):
        with suppress(KafkaError):
            step(opened, data.draw)
        assert controller.image is seen[-1], "a change was not told"
    published = plain(controller.image)
    again = opened.reopen(starts=False)
    assert plain(again.controller.image) == published
    again.metadata_log.rewrite(again.controller.image)
    assert plain(again.reopen(starts=False).controller.image) == published
