"""The response type of each request, as the type checker infers it through each door.

The type checker reads this file with the rest (`files` in pyproject.toml): it reports a wrong
`assert_type` and an unused `ignore`. Run as a test, the file shows that the types are true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import pytest

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.transport import ANY_NODE
from wire.api_keys import ApiKey
from wire.schemas.list_groups import ListGroupsRequest, ListGroupsResponse
from wire.schemas.metadata import MetadataRequest, MetadataResponse
from wire.schemas.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from embedlog.client.admin.calls import AdminCalls
    from embedlog.transport import Transport


def through_any_transport(transport: Transport) -> None:
    assert_type(transport.send(ANY_NODE, MetadataRequest()), Pending[MetadataResponse])
    transport.send(ANY_NODE, MetadataResponse())  # type: ignore[arg-type]


def through_the_admin_client(calls: AdminCalls) -> None:
    assert_type(calls.call(ANY_NODE, ListGroupsRequest()), ListGroupsResponse)


def test_the_broker_answers_as_the_request_is_typed() -> None:
    with Cluster() as cluster:
        context = RequestContext(ApiKey.METADATA, 12)
        answer = cluster.broker().core.handle(context, MetadataRequest(topics=None))
        assert_type(answer, MetadataResponse | Pending[MetadataResponse])
        assert isinstance(answer, MetadataResponse)
        assert answer.cluster_id == cluster.broker().core.cluster_id
        with pytest.raises(AttributeError):
            answer.groups  # type: ignore[attr-defined]  # noqa: B018


def test_a_transport_promises_as_the_request_is_typed() -> None:
    with Cluster() as cluster:
        pending = cluster.connect().send(ANY_NODE, ListGroupsRequest())
        assert_type(pending, Pending[ListGroupsResponse])
        assert isinstance(pending.result(), ListGroupsResponse)


def test_a_produce_request_may_have_no_answer() -> None:
    with Cluster() as cluster:
        pending = cluster.connect().send(ANY_NODE, ProduceRequest(acks=0))
        assert_type(pending, Pending[ProduceResponse | None])
        assert pending.result() is None
