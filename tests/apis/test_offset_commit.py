"""OffsetCommit: stored offsets and refusals, at every version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.offsets import commit, commit_codes, fetch, fetched
from wire.error_codes import ErrorCode
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

Call = Callable[..., Any]


def test_an_offset_is_stored_with_epoch_and_metadata(client: Any) -> None:
    topic, topic_id = client.make_topic(2)
    request = commit("g", {(topic, 0): 5, (topic, 1): 6}, metadata="mé", leader_epoch=3)
    assert commit_codes(client.call(request, 9)) == {(topic, 0): 0, (topic, 1): 0}
    (group,) = client.call(fetch("g", [(topic_id, 0)])).groups
    (found,) = group.topics[0].partitions
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (5, 3, "mé")


@pytest.mark.parametrize("version", range(11))
def test_every_version_stores(client: Any, version: int) -> None:
    topic, topic_id = client.make_topic()
    place = (topic_id if version >= 10 else topic), 0
    assert commit_codes(client.call(commit("g", {place: version}), version)) == {place: 0}
    assert fetched(client.call(fetch("g"), 9)) == {(topic, 0): version}


def test_the_last_of_several_offsets_counts(client: Any) -> None:
    topic, _ = client.make_topic()
    partitions = [
        OffsetCommitRequestPartition(partition_index=0, committed_offset=n, committed_metadata=None)
        for n in (8, 9)
    ]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    response = client.call(OffsetCommitRequest(group_id="g", topics=topics), 9)
    assert [partition.error_code for partition in response.topics[0].partitions] == [0, 0]
    assert fetched(client.call(fetch("g"), 9)) == {(topic, 0): 9}


def test_null_metadata_is_stored_as_nothing(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}, metadata=None), 9)
    (group,) = client.call(fetch("g"), 9).groups
    assert group.topics[0].partitions[0].metadata == ""


def test_negative_offsets_are_stored(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): -5}), 9)
    assert fetched(client.call(fetch("g"), 9)) == {(topic, 0): -5}


def test_the_empty_group_id_is_a_group(client: Any) -> None:
    topic, _ = client.make_topic()
    assert commit_codes(client.call(commit("", {(topic, 0): 5}), 9)) == {(topic, 0): 0}
    assert fetched(client.call(fetch(""), 9)) == {(topic, 0): 5}


def test_what_does_not_exist_is_refused_and_stands_first(client: Any) -> None:
    topic, _ = client.make_topic(2)
    response = client.call(commit("g", {(topic, 0): 1, (topic, 2): 1, ("no", 0): 1}), 9)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(commit_codes(response).items()) == [
        ((topic, 2), unknown),
        ((topic, 0), 0),
        (("no", 0), unknown),
    ]
    assert [len(answer.partitions) for answer in response.topics] == [2, 1]


def test_unknown_ids_are_refused(client: Any) -> None:
    _, topic_id = client.make_topic()
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    other = b"x" * 16
    response = client.call(commit("g", {(other, 0): 1, (topic_id, 0): 2, (topic_id, 7): 3}), 10)
    assert commit_codes(response) == {
        (other, 0): unknown,
        (topic_id, 0): 0,
        (topic_id, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_too_much_metadata_is_refused_for_its_partition(client: Any) -> None:
    topic, _ = client.make_topic(2)
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    response = client.call(commit("g", {(topic, 0): 1}, metadata="x" * 4097), 9)
    assert commit_codes(response) == {(topic, 0): too_large}
    # The limit counts characters, as Java does: UTF-16 units.
    response = client.call(commit("g", {(topic, 0): 1}, metadata="é" * 4096), 9)
    assert commit_codes(response) == {(topic, 0): 0}
    response = client.call(commit("g", {(topic, 0): 1}, metadata="\U0001f600" * 2049), 9)
    assert commit_codes(response) == {(topic, 0): too_large}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_no_group_is_refused(client: Any, version: int, code: int) -> None:
    topic, _ = client.make_topic()
    places = {(topic, 0): 1, ("no", 0): 1}
    response = client.call(commit("g", places, member_id="m", generation=3), version)
    assert commit_codes(response) == {
        (topic, 0): code,
        ("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert fetched(client.call(fetch("g"), 9)) == {}


def test_a_group_without_members_knows_no_generation(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 1}), 9)
    for member_id in ("", "m"):
        request = commit("g", {(topic, 0): 2}, member_id=member_id, generation=3)
        assert commit_codes(client.call(request, 9)) == {(topic, 0): ErrorCode.UNKNOWN_MEMBER_ID}
    request = commit("g", {(topic, 0): 2}, member_id="m")
    assert commit_codes(client.call(request, 9)) == {(topic, 0): 0}


def test_nothing_to_commit_is_answered_with_nothing(client: Any) -> None:
    assert client.call(OffsetCommitRequest(group_id="g"), 9) == OffsetCommitResponse()
    topics = [OffsetCommitRequestTopic(name="no")]
    request = OffsetCommitRequest(group_id="g", topics=topics)
    assert client.call(request, 9) == OffsetCommitResponse()


def test_an_answer_means_that_it_is_durable(durable_client: Any) -> None:
    topic, _ = durable_client.make_topic()
    assert commit_codes(durable_client.call(commit("g", {(topic, 0): 5}), 9)) == {(topic, 0): 0}
    partition = durable_client.broker.group_coordinator.partition_for("g")
    log = durable_client.broker.replica_manager.partition("__consumer_offsets", partition).log
    assert log.durability.synced_offset == log.log_end_offset == 1
    assert fetched(durable_client.call(fetch("g"), 9)) == {(topic, 0): 5}
