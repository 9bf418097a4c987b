"""Our clients and Apache Kafka itself: the same promises as with our own broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog import Admin
from tests.client import test_clients as promises
from tests.client.admin import test_admin as admin_promises
from tests.client.admin import test_groups as group_promises
from tests.support.kafka import real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CODECS = ["gzip", "snappy", "lz4", "zstd"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka")) as listening:
        yield listening


@pytest.fixture
def connect(address: str) -> Callable[[], Any]:
    """Return a target: a cluster without topics."""
    with Admin(address) as admin:
        admin.delete_topics(list(admin.list_topics())).check()
    return lambda: address


@pytest.mark.parametrize(
    "promise",
    [
        promises.test_records_come_back_as_they_were_sent,
        promises.test_the_three_ways_to_read_agree,
        promises.test_seeking_and_positions,
        promises.test_offsets_by_time_and_at_the_edges,
        promises.test_paused_partitions_keep_what_was_fetched,
        promises.test_an_offset_out_of_range_follows_the_policy,
        promises.test_deleted_records_move_a_reader_on,
        promises.test_topics_are_made_described_grown_and_deleted,
        promises.test_settings_are_described_and_altered,
        promises.test_the_cluster_its_directories_and_offsets,
        promises.test_topics_and_partitions_are_looked_up,
        promises.test_a_record_above_the_topics_limit_is_refused,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_keeps_the_promise_too(promise: Any, connect: Callable[[], Any]) -> None:
    promise(connect)


@pytest.mark.parametrize(
    "promise",
    [
        admin_promises.test_topics_have_their_own_errors,
        admin_promises.test_settings_have_their_own_errors,
        admin_promises.test_records_and_offsets_have_their_own_errors,
        admin_promises.test_directories_have_an_error_for_each_broker,
        group_promises.test_groups_are_listed_by_state_and_type,
        group_promises.test_a_classic_group_is_described,
        group_promises.test_a_group_of_the_consumer_protocol_is_described,
        group_promises.test_each_group_has_its_own_error,
        group_promises.test_offsets_are_stored_listed_and_deleted,
        group_promises.test_a_group_reads_again_from_where_it_was_put,
        group_promises.test_producers_of_partitions_are_described,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_is_administered_too(promise: Any, connect: Callable[[], Any]) -> None:
    promise(connect)


@pytest.mark.parametrize("protocol", group_promises.PROTOCOLS, ids=["classic", "consumer"])
@pytest.mark.parametrize(
    "promise",
    [
        group_promises.test_offsets_of_a_group_in_use_are_protected,
        group_promises.test_members_are_removed_by_either_id,
        group_promises.test_all_members_are_removed_at_once,
        group_promises.test_a_removed_member_loses_its_partitions_and_joins_again,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_has_the_same_groups_of_each_protocol(
    promise: Any, connect: Callable[[], Any], protocol: dict[str, Any]
) -> None:
    promise(connect, protocol)


@pytest.mark.parametrize("linger_ms", [0, 5])
@pytest.mark.parametrize("idempotent", [False, True])
def test_kafka_keeps_the_order_too(
    connect: Callable[[], Any], linger_ms: int, idempotent: bool
) -> None:
    promises.test_many_records_keep_their_order(connect, linger_ms, idempotent)


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_reads_our_codecs(connect: Callable[[], Any], codec: str) -> None:
    promises.test_compressed_records_come_back(connect, codec)
