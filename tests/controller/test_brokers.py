"""Brokers that register, are fenced, come back and leave; the effect on partitions."""

from __future__ import annotations

import pytest

from embedlog.common import TopicPartition
from embedlog.controller.controller import NewTopic
from embedlog.controller.features import ELIGIBLE_LEADER_REPLICAS, SAFE_DOWNGRADE
from embedlog.controller.metadata import MetadataDelta
from embedlog.errors import BrokerIdNotRegistered, InvalidRegistration, StaleBrokerEpoch
from tests.controller.metadata_state import Opened, plain


@pytest.fixture
def opened() -> Opened:
    return Opened(node_ids=(1, 2, 3))


def create(opened: Opened, *replicas: tuple[int, ...], min_isr: int = 1) -> None:
    topic = NewTopic(
        "t", assignments=list(enumerate(replicas)), configs={"min.insync.replicas": str(min_isr)}
    )
    made = opened.controller.create_topics([topic])["t"]
    assert not isinstance(made, Exception), made


def test_a_broker_is_fenced_until_it_is_there(opened: Opened) -> None:
    brokers = opened.controller.brokers
    incarnation = opened.runtime.random.uuid()
    offset = opened.metadata_log.end_offset
    epoch = brokers.register(4, rack="r", incarnation=incarnation, directories=[b"d" * 16])
    assert epoch == offset
    image = opened.controller.image.brokers[4]
    assert (image.rack, image.epoch, image.is_fenced) == ("r", epoch, True)
    assert (image.incarnation, image.directories) == (incarnation, (b"d" * 16,))
    assert not opened.controller.image.is_active(4)
    with pytest.raises(StaleBrokerEpoch, match=f"Expected broker epoch {epoch}, but got broker"):
        brokers.unfence(4, epoch - 1)
    with pytest.raises(StaleBrokerEpoch, match="No broker registration found for broker id 9"):
        brokers.unfence(9, 1)
    brokers.unfence(4, epoch)
    assert opened.controller.image.is_active(4)
    before = opened.controller.image
    brokers.unfence(4, epoch)
    assert opened.controller.image is before


def test_the_same_incarnation_keeps_its_epoch_and_state(opened: Opened) -> None:
    known = opened.controller.image.brokers[1]
    again = opened.controller.brokers.register(
        1, rack="new", incarnation=known.incarnation, previous_epoch=-1
    )
    image = opened.controller.image.brokers[1]
    assert again == known.epoch == image.epoch
    assert (image.rack, image.is_fenced) == ("new", False)


def test_a_directory_belongs_to_one_broker(opened: Opened) -> None:
    brokers = opened.controller.brokers
    brokers.register(4, rack=None, incarnation=b"i" * 16, directories=[b"d" * 16])
    with pytest.raises(InvalidRegistration, match="Broker 4 is already registered with directory"):
        brokers.register(5, rack=None, incarnation=b"j" * 16, directories=[b"d" * 16])


def test_a_fenced_broker_leads_nothing_and_is_in_no_in_sync_set(opened: Opened) -> None:
    create(opened, (1, 2), (2, 1), (3, 2))
    heard: list[MetadataDelta] = []
    opened.controller.on_change = heard.append
    opened.controller.brokers.fence(1)
    first, second, third = (opened.partition("t", number) for number in range(3))
    assert (first.leader, first.isr, first.leader_epoch, first.partition_epoch) == (2, (2,), 1, 1)
    assert (second.leader, second.isr, second.leader_epoch) == (2, (2,), 0)
    assert third.partition_epoch == 0
    assert opened.controller.image.offline_replicas(first) == (1,)
    (delta,) = heard
    assert delta.brokers_changed
    assert delta.partitions_changed == [TopicPartition("t", 0), TopicPartition("t", 1)]
    opened.controller.brokers.fence(1)
    assert len(heard) == 1
    with pytest.raises(BrokerIdNotRegistered, match="Broker ID 9 is not currently registered"):
        opened.controller.brokers.fence(9)


def test_where_the_last_one_goes_nobody_leads_until_it_is_back(opened: Opened) -> None:
    create(opened, (1, 2))
    brokers = opened.controller.brokers
    brokers.fence(2)
    brokers.fence(1)
    alone = opened.partition("t")
    assert (alone.leader, alone.isr, alone.elr, alone.last_known_elr) == (-1, (), (1,), (1,))
    opened.start(2, previous_epoch=opened.epoch(2))
    assert opened.partition("t").leader == -1
    opened.start(1, previous_epoch=opened.epoch(1))
    back = opened.partition("t")
    assert (back.leader, back.isr, back.elr, back.leader_epoch) == (1, (1,), (), 2)


def test_who_lost_power_may_lead_again_only_as_the_last_leader(opened: Opened) -> None:
    create(opened, (1, 2), min_isr=2)
    brokers = opened.controller.brokers
    brokers.fence(1)
    brokers.fence(2)
    assert (opened.partition("t").isr, opened.partition("t").elr) == ((), (1, 2))
    assert opened.partition("t").last_known_elr == (2,)
    opened.start(1)
    assert (opened.partition("t").leader, opened.partition("t").elr) == (-1, (2,))
    opened.start(2)
    uncertain = opened.partition("t")
    assert (uncertain.leader, uncertain.isr, uncertain.is_recovering) == (2, (2,), True)


def test_without_the_feature_the_last_in_sync_leads_again(opened: Opened) -> None:
    create(opened, (1, 2), min_isr=2)
    opened.controller.update_features([(ELIGIBLE_LEADER_REPLICAS, 0, SAFE_DOWNGRADE)])
    brokers = opened.controller.brokers
    brokers.fence(1)
    brokers.fence(2)
    assert (opened.partition("t").leader, opened.partition("t").isr, opened.partition("t").elr) == (
        -1,
        (2,),
        (),
    )
    opened.start(1)
    assert opened.partition("t").leader == -1
    opened.start(2)
    assert (
        opened.partition("t").leader,
        opened.partition("t").isr,
        opened.partition("t").is_recovering,
    ) == (
        2,
        (2,),
        False,
    )


def test_a_new_incarnation_was_away(opened: Opened) -> None:
    create(opened, (1, 2, 3))
    first = opened.epoch(1)
    epoch = opened.controller.brokers.register(
        1, rack=None, incarnation=b"i" * 16, previous_epoch=first
    )
    assert epoch > first
    assert (opened.partition("t").leader, opened.partition("t").isr) == (2, (2, 3))
    assert opened.controller.image.brokers[1].is_fenced


def test_a_controlled_shutdown_moves_leaders(opened: Opened) -> None:
    create(opened, (1, 2), (1, 3))
    brokers = opened.controller.brokers
    brokers.fence(3)
    assert brokers.begin_controlled_shutdown(1, opened.epoch(1)) == 0
    assert (opened.partition("t").leader, opened.partition("t").isr) == (2, (2,))
    assert opened.partition("t", 1).leader == -1
    assert not opened.controller.image.is_active(1)
    assert not opened.controller.image.brokers[1].is_fenced
    before = opened.controller.image
    assert brokers.begin_controlled_shutdown(1, opened.epoch(1)) == 0
    assert opened.controller.image is before
    with pytest.raises(StaleBrokerEpoch):
        brokers.begin_controlled_shutdown(1, 0)


def test_who_has_left_is_not_brought_back_by_what_it_asked_for_before(opened: Opened) -> None:
    create(opened, (1, 2))
    brokers, epoch = opened.controller.brokers, opened.epoch(1)
    brokers.begin_controlled_shutdown(1, epoch)
    brokers.fence(1)
    brokers.unfence(1, epoch)
    assert opened.controller.image.brokers[1].is_fenced
    opened.start(1)
    assert opened.controller.image.is_active(1)
    assert not opened.controller.image.brokers[1].in_controlled_shutdown


def test_an_unregistered_broker_is_forgotten_and_its_replicas_are_offline(opened: Opened) -> None:
    create(opened, (1, 2, 3))
    opened.controller.brokers.unregister(1)
    assert set(opened.controller.image.brokers) == {2, 3}
    assert (opened.partition("t").leader, opened.partition("t").isr) == (2, (2, 3))
    assert opened.controller.image.offline_replicas(opened.partition("t")) == (1,)
    with pytest.raises(BrokerIdNotRegistered, match="Broker ID 1 is not currently registered"):
        opened.controller.brokers.unregister(1)


def test_brokers_and_partitions_are_there_after_a_restart_and_after_a_snapshot(
    opened: Opened,
) -> None:
    create(opened, (1, 2), (3, 1), min_isr=2)
    opened.controller.brokers.fence(3)
    opened.controller.brokers.begin_controlled_shutdown(2, opened.epoch(2))
    published = plain(opened.controller.image)
    again = opened.reopen()
    assert plain(again.controller.image) == published
    again.metadata_log.rewrite(again.controller.image)
    assert plain(again.reopen().controller.image) == published


def test_the_only_broker_of_a_cluster_is_in_no_log() -> None:
    opened = Opened()
    assert opened.epoch(1) == -1
    opened.metadata_log.rewrite(opened.controller.image)
    again = opened.reopen()
    assert set(again.controller.image.brokers) == {1}
    assert again.epoch(1) == -1
