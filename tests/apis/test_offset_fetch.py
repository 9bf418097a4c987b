"""OffsetFetch: stored offsets, missing ones, and the place of errors in each version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.offsets import commit, fetch, fetched, older_fetch, question
from wire.error_codes import ErrorCode
from wire.schemas.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup


@pytest.mark.parametrize("version", range(1, 8))
def test_older_versions_ask_for_one_group(client: Any, version: int) -> None:
    topic, _ = client.make_topic(3)
    client.call(commit("g", {(topic, 0): 5, (topic, 1): 6}, leader_epoch=2), 9)
    places = [(topic, 0), (topic, 1), (topic, 2), (topic, 9), ("no", 0)]
    response = client.call(older_fetch("g", places), version)
    assert response.error_code == 0
    assert fetched(response) == dict(zip(places, [5, 6, -1, -1, -1], strict=True))
    epochs = [p.committed_leader_epoch for p in response.topics[0].partitions]
    assert version < 5 or epochs == [2, 2, -1, -1]


def test_version_0_calls_missing_offsets_unknown(client: Any) -> None:
    topic, _ = client.make_topic(2)
    client.call(commit("g", {(topic, 0): 5}), 9)
    response = client.call(older_fetch("g", [(topic, 0), (topic, 1)]), 0)
    found = [(p.committed_offset, p.error_code) for p in response.topics[0].partitions]
    assert found == [(5, 0), (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize("version", range(2, 8))
def test_null_asks_for_all_topics(client: Any, version: int) -> None:
    topic, _ = client.make_topic(2)
    client.call(commit("g", {(topic, 0): 5, (topic, 1): 6}), 9)
    assert fetched(client.call(older_fetch("g", None), version)) == {(topic, 0): 5, (topic, 1): 6}
    assert fetched(client.call(older_fetch("unknown", None), version)) == {}


@pytest.mark.parametrize("version", [8, 9])
def test_newer_versions_ask_for_several_groups(client: Any, version: int) -> None:
    topic, _ = client.make_topic(2)
    client.call(commit("one", {(topic, 0): 5}), 9)
    client.call(commit("two", {(topic, 1): 6}), 9)
    groups = [
        question("two"),
        question("one", [(topic, 0), (topic, 1)]),
        question("unknown", [(topic, 0)]),
        question("unknown"),
        question("one", []),
    ]
    response = client.call(OffsetFetchRequest(groups=groups), version)
    assert [group.group_id for group in response.groups] == [g.group_id for g in groups]
    assert [fetched(group) for group in response.groups] == [
        {(topic, 1): 6},
        {(topic, 0): 5, (topic, 1): -1},
        {(topic, 0): -1},
        {},
        {},
    ]


def test_no_groups_are_answered_with_none(client: Any) -> None:
    assert client.call(OffsetFetchRequest(), 9).groups == []


def test_version_10_has_topic_ids(client: Any) -> None:
    topic, topic_id = client.make_topic(2)
    client.call(commit("g", {(topic, 0): 5}), 9)
    assert fetched(client.call(fetch("g"), 10)) == {(topic_id, 0): 5}
    unknown = b"x" * 16
    (group,) = client.call(fetch("g", [(unknown, 0), (topic_id, 0), (topic_id, 1)]), 10).groups
    found = [
        (answer.topic_id, p.partition_index, p.committed_offset, p.error_code)
        for answer in group.topics
        for p in answer.partitions
    ]
    # As in Kafka, unknown topics come last.
    assert found == [
        (topic_id, 0, 5, 0),
        (topic_id, 1, -1, 0),
        (unknown, 0, -1, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_members_are_not_asked_for_where_the_group_has_none(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    for member_id, epoch in (("m", 3), (None, 3), ("", 0), (None, -1)):
        request = fetch("g", [(topic, 0)], member_id=member_id, member_epoch=epoch)
        assert fetched(client.call(request, 9)) == {(topic, 0): 5}


def test_repeated_entries_are_answered_twice(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    (group,) = client.call(fetch("g", [(topic, 0), (topic, 0)]), 9).groups
    assert [p.committed_offset for p in group.topics[0].partitions] == [5, 5]


def test_stable_offsets_are_there_without_a_transaction(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    request = fetch("g", [(topic, 0)], require_stable=True)
    assert fetched(client.call(request, 9)) == {(topic, 0): 5}


def test_offsets_of_a_deleted_topic_are_gone(client: Any) -> None:
    topic, topic_id = client.make_topic()
    other, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5, (other, 0): 6}), 9)
    client.cluster.broker().core.controller.delete_topic(topic_id)
    assert fetched(client.call(fetch("g"), 9)) == {(other, 0): 6}
    client.cluster.create_topic(topic)
    assert fetched(client.call(fetch("g", [(topic, 0)]), 9)) == {(topic, 0): -1}


def test_committed_offsets_are_read_back_at_once(durable_client: Any) -> None:
    topic, _ = durable_client.make_topic()
    for offset in range(3):
        durable_client.call(commit("g", {(topic, 0): offset}), 9)
        assert fetched(durable_client.call(fetch("g"), 9)) == {(topic, 0): offset}


def test_a_group_is_told_all_its_offsets_ten_times_at_most(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in "gh" + 500 * "g"]
    response = client.call(OffsetFetchRequest(groups=groups), 8)
    assert [group.group_id for group in response.groups] == [*"gh", *9 * "g"]
