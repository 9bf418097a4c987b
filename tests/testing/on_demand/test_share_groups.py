"""A share group in the hands of a test."""

from __future__ import annotations

import pytest

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.errors import IllegalState
from embedlog.testing import Kafka
from wire.api_keys import ApiKey
from wire.schemas.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def test_a_share_group_is_seen_and_its_members_are_expelled() -> None:
    with Kafka(topics={"orders": 2}) as kafka:
        broker = kafka.cluster.broker().core
        assert topics.ensure_internal_topic(broker, "__consumer_offsets")
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=["orders"]
        )
        context = RequestContext(ApiKey.SHARE_GROUP_HEARTBEAT, 1, client_id="a")
        answer = broker.handle(context, request)
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        assert answer.error_code == 0
        group = kafka.group("g")
        found = group.value
        assert (found.state, found.protocol, found.epoch) == ("Stable", "share", 2)
        (member,) = found.members
        assert (member.client_id, member.subscription, member.epoch) == ("a", ("orders",), 2)
        with pytest.raises(IllegalState, match="share group"):
            group.rebalance()
        with pytest.raises(IllegalState, match="share group"):
            group.commit({("orders", 0): 1})
        group.expel("a")
        assert group.value.state == "Empty"
