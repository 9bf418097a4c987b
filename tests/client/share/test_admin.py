"""The admin client's calls about share groups, on each broker."""

from __future__ import annotations

import pytest

from embedlog import Admin, ShareGroupOffset, TopicPartition, errors
from tests.client.share.places import Connect, Place, numbered, read


def test_a_share_group_is_described_and_listed(connect: Connect) -> None:
    place = Place(connect, 2)
    place.fill(*numbered(1))
    with place.consumer(client_id="me") as consumer, Admin(connect()) as admin:
        read(consumer, 1)
        found = admin.describe_share_groups(
            [place.group, "no such group"], include_authorized_operations=True
        )
        described = found[place.group]
        assert (described.group_type, described.state) == ("share", "Stable")
        assert (described.protocol_type, described.assignor) == ("share", "simple")
        assert described.group_epoch > 0
        assert described.authorized_operations
        (member,) = described.members
        assert member.client_id == "me"
        assert member.subscribed_topics == [place.topic]
        assert member.assignment == [TopicPartition(place.topic, number) for number in range(2)]
        with pytest.raises(errors.GroupIdNotFound):
            found["no such group"]
        listed = admin.list_groups(types=["share"])[place.group]
        assert (listed.group_type, listed.state) == ("share", "Stable")


def test_start_offsets_are_listed_altered_and_deleted(connect: Connect) -> None:
    place = Place(connect, 1)
    here, nowhere = TopicPartition(place.topic, 0), TopicPartition(place.topic, 7)
    place.fill(*numbered(5), one_batch=False)
    with place.consumer() as consumer:
        read(consumer, 5)
        consumer.commit_sync()
    with Admin(connect()) as admin:
        offsets = admin.list_share_group_offsets([place.group])[place.group]
        assert list(offsets) == [here]
        stored = offsets[here]
        assert isinstance(stored, ShareGroupOffset)
        assert stored.lag == 0
        unknown = TopicPartition("no-such-topic", 0)
        named = admin.list_share_group_offsets({place.group: [here, unknown]})[place.group]
        assert named[here] == stored
        assert named[unknown] is None
        altered = admin.alter_share_group_offsets(place.group, {here: 3, nowhere: 0})
        assert altered[here] is None
        with pytest.raises(errors.UnknownTopicOrPartition):
            altered[nowhere]
        again = admin.list_share_group_offsets([place.group])[place.group][here]
        assert again is not None
        assert again.start_offset == 3
    with place.consumer() as consumer:
        assert [record.offset for record in read(consumer, 2)] == [3, 4]
    with Admin(connect()) as admin:
        deleted = admin.delete_share_group_offsets(place.group, [place.topic, "no such topic"])
        assert deleted[place.topic] is None
        with pytest.raises(errors.UnknownTopicOrPartition):
            deleted["no such topic"]
        assert not admin.list_share_group_offsets([place.group])[place.group].values


def test_offsets_of_a_group_with_members_are_protected(place: Place) -> None:
    place.fill(b"a")
    with place.consumer() as consumer, Admin(place.connect()) as admin:
        read(consumer, 1)
        with pytest.raises(errors.NonEmptyGroup):
            admin.alter_share_group_offsets(place.group, {(place.topic, 0): 0})
        with pytest.raises(errors.NonEmptyGroup):
            admin.delete_share_group_offsets(place.group, [place.topic])
        with pytest.raises(errors.NonEmptyGroup):
            admin.delete_groups([place.group])[place.group]


def test_an_unknown_group_is_made_by_its_offsets_and_can_be_deleted(place: Place) -> None:
    with Admin(place.connect()) as admin:
        admin.alter_share_group_offsets(place.group, {(place.topic, 0): -1}).check()
        assert admin.describe_share_groups([place.group])[place.group].state == "Empty"
        admin.delete_groups([place.group]).check()
        with pytest.raises(errors.GroupIdNotFound):
            admin.delete_share_group_offsets(place.group, [place.topic])
