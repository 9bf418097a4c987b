"""OffsetDelete: an administrator deletes offsets; offsets in use stay."""

from __future__ import annotations

from typing import Any

from tests.support.offsets import commit, delete, delete_codes, fetch, fetched
from wire.error_codes import ErrorCode
from wire.schemas.describe_groups import DescribeGroupsRequest


def test_offsets_are_deleted_whether_there_are_any_or_not(client: Any) -> None:
    topic, _ = client.make_topic(3)
    client.call(commit("g", {(topic, 0): 5, (topic, 1): 6}), 9)
    response = client.call(delete("g", [(topic, 0), (topic, 2)]), 0)
    assert delete_codes(response) == {(topic, 0): 0, (topic, 2): 0}
    assert fetched(client.call(fetch("g"), 9)) == {(topic, 1): 6}


def test_the_group_outlives_its_last_offset(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    client.call(delete("g", [(topic, 0)]), 0)
    (group,) = client.call(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert (group.error_code, group.group_state) == (0, "Empty")


def test_what_does_not_exist_is_refused_and_stands_first(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = delete_codes(client.call(delete("g", [(topic, 0), (topic, 9), ("no", 0)]), 0))
    assert list(codes.items()) == [((topic, 9), unknown), ((topic, 0), 0), (("no", 0), unknown)]


def test_an_unknown_group_is_an_error_for_the_whole_answer(client: Any) -> None:
    topic, _ = client.make_topic()
    for places in ([(topic, 0)], [("no", 0)], []):
        response = client.call(delete("unknown", places), 0)
        assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_an_empty_group_id_is_invalid(client: Any) -> None:
    assert client.call(delete("", []), 0).error_code == ErrorCode.INVALID_GROUP_ID
