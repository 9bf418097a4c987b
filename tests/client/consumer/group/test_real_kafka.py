"""Our consumers in groups of Apache Kafka: the tests of our own broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog import Admin
from tests.client.consumer.group import test_groups as promises
from tests.support.kafka import real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka")) as listening:
        yield listening


@pytest.fixture
def connect(address: str) -> Callable[[], Any]:
    """The address of a cluster that has only the coordinators' topics."""
    with Admin(address) as admin:
        names = [name for name in admin.list_topics() if not name.startswith("__")]
        admin.delete_topics(names).check()
    return lambda: address


@pytest.mark.parametrize("protocol", promises.PROTOCOLS, ids=["eager", "cooperative", "kip-848"])
@pytest.mark.parametrize(
    "promise",
    [
        promises.test_one_member_reads_everything_and_goes_on_where_it_stopped,
        promises.test_members_share_and_hand_over,
        promises.test_a_pattern_finds_topics_that_come_later,
        promises.test_another_subscription_replaces_the_first,
        promises.test_partitions_that_are_added_are_assigned,
        promises.test_commits_by_hand,
        promises.test_a_static_member_comes_back_to_its_partitions,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_keeps_the_promise_in_each_protocol(
    promise: Any, connect: Callable[[], Any], protocol: dict[str, Any]
) -> None:
    promise(connect, protocol)


@pytest.mark.parametrize(
    "promise",
    [
        promises.test_assigned_partitions_use_the_groups_offsets_too,
        promises.test_an_offset_in_the_group_may_be_missing,
        promises.test_enforcing_a_rebalance_begins_a_new_generation,
        promises.test_a_listener_may_use_the_consumer,
        promises.test_what_a_listener_raises_ends_the_poll_not_the_rebalance,
        promises.test_the_broker_matches_patterns_of_its_own,
        promises.test_metrics_count_what_happened,
        promises.test_interceptors_see_records_and_commits,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_keeps_the_promise_too(promise: Any, connect: Callable[[], Any]) -> None:
    promise(connect)
