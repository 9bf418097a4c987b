"""Look-ups find partitions that are created later, and keep the membership alive meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
import embedlog.aio
from embedlog import Admin, Consumer
from embedlog.broker.context import RequestContext
from embedlog.errors import TimedOut, UnknownServerError
from embedlog.runtime.pending import Pending
from tests.client.faulty_cluster import faulty_cluster, poll_until
from wire.schemas.list_offsets import ListOffsetsRequest
from wire.schemas.metadata import MetadataRequest
from wire.schemas.offset_commit import OffsetCommitRequest
from wire.schemas.offset_fetch import OffsetFetchRequest

Connect = Callable[[], Any]
HERE = ("t", 0)

LOOK_UPS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "beginning_offsets": (
        ListOffsetsRequest,
        lambda consumer: consumer.beginning_offsets([HERE], 120_000),
    ),
    "end_offsets": (ListOffsetsRequest, lambda consumer: consumer.end_offsets([HERE], 120_000)),
    "offsets_for_times": (
        ListOffsetsRequest,
        lambda consumer: consumer.offsets_for_times({HERE: 0}, 120_000),
    ),
    "partitions_for": (
        MetadataRequest,
        lambda consumer: consumer.partitions_for("another", 120_000),
    ),
    "list_topics": (MetadataRequest, lambda consumer: consumer.list_topics(120_000)),
    "committed": (OffsetFetchRequest, lambda consumer: consumer.committed([HERE], 120_000)),
    "commit": (OffsetCommitRequest, lambda consumer: consumer.commit({HERE: 1}, 120_000)),
}


def _closed_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_a_topic_that_was_missing_is_seen_once_it_is_there(connect: Connect) -> None:
    with Consumer(connect(), allow_auto_create_topics=False) as consumer:
        assert consumer.partitions_for("later") == []
        assert consumer.partitions_for("later") == []
        with Admin(connect()) as admin:
            admin.create_topics({"later": 3}).check()
        assert len(consumer.partitions_for("later")) == 3


def test_for_asyncio_too_a_missing_topic_is_seen_once_it_is_there(connect: Connect) -> None:
    async def main() -> None:
        async with embedlog.aio.Consumer(connect(), allow_auto_create_topics=False) as consumer:
            assert await consumer.partitions_for("later") == []
            async with embedlog.aio.Admin(connect()) as admin:
                (await admin.create_topics({"later": 3})).check()
            assert len(await consumer.partitions_for("later")) == 3

    asyncio.run(main())


@pytest.mark.slow
def test_a_subscribed_topic_that_was_missing_is_seen_once_it_is_there(connect: Connect) -> None:
    with Consumer(connect(), group_id="g", allow_auto_create_topics=False) as consumer:
        consumer.subscribe(["later"])
        consumer.poll(10)
        assert consumer.partitions_for("later") == []
        with Admin(connect()) as admin:
            admin.create_topics({"later": 3}).check()
        assert len(consumer.partitions_for("later")) == 3


def test_an_answer_to_an_earlier_request_is_not_believed() -> None:
    with faulty_cluster(t=1) as cluster:
        settings: Any = {"allow_auto_create_topics": False}
        with Consumer(cluster, **settings) as consumer:
            earlier: Pending[Any] = Pending()
            cluster.answer(MetadataRequest, lambda _request: earlier)
            with pytest.raises(TimedOut, match="topic 'later'"):
                consumer.partitions_for("later", timeout_ms=100)
            request = cluster.of_kind(MetadataRequest)[-1]
            old_news = cluster.cluster.broker().core.handle(RequestContext(3, 12), request)
            cluster.cluster.create_topic("later", 2)
            earlier.complete(old_news)
            assert len(consumer.partitions_for("later")) == 2


@pytest.mark.parametrize(
    "look_up",
    [
        lambda consumer: consumer.partitions_for("t", timeout_ms=50),
        lambda consumer: consumer.list_topics(timeout_ms=50),
        lambda consumer: consumer.end_offsets([HERE], timeout_ms=50),
    ],
)
def test_a_broker_that_is_not_there_is_a_time_out(look_up: Callable[[Any], Any]) -> None:
    consumer = Consumer(_closed_port())
    with pytest.raises(TimedOut):
        look_up(consumer)
    consumer.close(0)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("call", LOOK_UPS)
def test_a_member_stays_one_while_its_user_waits_in_a_look_up(call: str, protocol: str) -> None:
    """The session is 45 s, the look-up two minutes, max.poll.interval.ms five."""
    silent, look_up = LOOK_UPS[call]
    with faulty_cluster(t=2) as cluster:
        settings: Any = {"group_protocol": protocol, "enable_auto_commit": False}
        one, other = cluster.member(**settings), cluster.member(**settings)
        for each in (one, other):
            each.subscribe(["t"])
        poll_until(lambda: len(one.assignment()) == len(other.assignment()) == 1, one, other)
        before = one.assignment()
        answer = cluster.silence(silent)
        with pytest.raises(TimedOut):
            look_up(one)
        answer()
        with cluster.cluster.admin() as admin:
            described = admin.describe_groups(["readers"])["readers"]
        assert len(described.members) == 2
        poll_until(lambda: True, one)
        assert one.assignment() == before
        one.close()
        other.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_look_up_longer_than_the_poll_interval_ends_the_membership(protocol: str) -> None:
    with faulty_cluster(t=1) as cluster:
        consumer = cluster.member(group_protocol=protocol, max_poll_interval_ms=60_000)
        consumer.subscribe(["t"])
        poll_until(lambda: len(consumer.assignment()) == 1, consumer)
        answer = cluster.silence(ListOffsetsRequest)
        with pytest.raises(TimedOut):
            consumer.end_offsets([HERE], 120_000)
        answer()
        with cluster.cluster.admin() as admin:
            described = admin.describe_groups(["readers"])["readers"]
        assert not described.members
        consumer.close()


def test_over_tcp_heartbeats_go_on_while_a_look_up_waits() -> None:
    with embedlog.open(group_initial_rebalance_delay_ms=0) as cluster:
        cluster.create_topic("t")
        address = cluster.listen("127.0.0.1", 0).address
        with Consumer(address, group_id="g", heartbeat_interval_ms=20) as consumer:
            consumer.subscribe(["t"])
            poll_until(lambda: len(consumer.assignment()) == 1, consumer)
            sent = consumer.metrics()["heartbeat-total"]
            with pytest.raises(TimedOut):
                consumer.end_offsets([("t", 7)], timeout_ms=200)
            assert consumer.metrics()["heartbeat-total"] > sent + 2


def test_a_partition_that_a_response_leaves_out_is_an_error() -> None:
    def shorten(request: Any) -> Any:
        answer = cluster.cluster.broker().core.handle(RequestContext(2, 9), request)
        answer.topics[0].partitions = answer.topics[0].partitions[:1]
        return answer

    with faulty_cluster(t=2) as cluster, Consumer(cluster) as consumer:
        cluster.answer(ListOffsetsRequest, shorten, count=100)
        with pytest.raises(UnknownServerError, match="the response lacks it"):
            consumer.beginning_offsets([("t", 0), ("t", 1)], 5_000)
