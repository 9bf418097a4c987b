"""A streams group in the hands of a test."""

from __future__ import annotations

import pytest

from embedlog import TopicPartition
from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.errors import IllegalState
from embedlog.testing import Kafka
from tests.golden.streams_group_requests import beat, first_beat, part, topology
from wire.api_keys import ApiKey
from wire.schemas.streams_group_heartbeat import StreamsGroupHeartbeatResponse

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
}
BOTH = tuple(TopicPartition("orders", number) for number in (0, 1))


def test_a_streams_group_is_seen_rebalanced_and_emptied() -> None:
    with Kafka(topics={"orders": 2}, config=SETTINGS) as kafka:
        broker = kafka.cluster.broker().core
        assert topics.ensure_internal_topic(broker, "__consumer_offsets")
        context = RequestContext(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, client_id="a")

        def told(request: object) -> int:
            answer = broker.handle(context, request)  # type: ignore[arg-type]
            assert isinstance(answer, StreamsGroupHeartbeatResponse), answer
            assert answer.error_code == 0, answer
            return answer.member_epoch

        epoch = told(first_beat("g", "m", topology(part("0", "orders"))))
        group = kafka.group("g")
        found = group.value
        assert (found.state, found.protocol, found.epoch) == ("Stable", "streams", 2)
        assert found.assignor == "sticky"
        (member,) = found.members
        assert (member.client_id, member.subscription, member.epoch) == ("a", ("orders",), epoch)
        assert member.assignment == member.target == BOTH
        group.commit({("orders", 0): 1})
        assert group.value.committed == {BOTH[0]: 1}
        assert group.rebalance() == 2
        assert group.value.state == "Assigning"
        assert told(beat("g", "m", epoch)) == epoch + 1
        group.expel("a")
        assert group.value.state == "Empty"
        with pytest.raises(IllegalState, match="no members"):
            group.rebalance()
