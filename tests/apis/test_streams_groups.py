"""The APIs of streams groups: internal topics, a restart, and the plugin for descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog import errors
from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.common import IN_PROCESS_HOST
from embedlog.coordinator.group.streams.descriptions import (
    Descriptions,
    PassingFailure,
    load_plugin,
)
from embedlog.errors import ConfigError
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from tests.apis.ask import ask, opened
from tests.golden.streams_group_requests import (
    beat,
    describe_streams,
    first_beat,
    internal,
    part,
    topology,
)
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest
from wire.schemas.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

SETTINGS = {
    "group_streams_initial_rebalance_delay_ms": 0,
    "group_streams_assignment_interval_ms": 0,
}
GIVEN = topology(part("0", "t", changelogs=[internal("t-changelog")]), epoch=2)
PLUGIN = f"{__name__}.Shelf"


class Shelf:
    """A plugin that keeps descriptions in memory, and fails on request."""

    kept: dict[tuple[str, int], TopologyDescription] = {}  # noqa: RUF012 - tests look at it
    error: Exception | None = None

    def set_topology(self, group_id: str, epoch: int, description: TopologyDescription) -> None:
        self._fail()
        self.kept[group_id, epoch] = description

    def get_topology(self, group_id: str, epoch: int) -> TopologyDescription | None:
        self._fail()
        return self.kept.get((group_id, epoch))

    def delete_topology(self, group_id: str) -> None:
        self._fail()
        for place in [place for place in self.kept if place[0] == group_id]:
            del self.kept[place]

    @classmethod
    def _fail(cls) -> None:
        if cls.error is not None:
            raise cls.error


@pytest.fixture(autouse=True)
def _empty_shelf() -> None:
    Shelf.kept.clear()
    Shelf.error = None


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened(**SETTINGS, group_streams_topology_description_plugin_class=PLUGIN) as cluster:
        prepare(cluster)
        yield cluster


def prepare(cluster: Cluster) -> None:
    topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
    ask(cluster, CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    ask(cluster, FindCoordinatorRequest(key="g"), 3)


def joined(cluster: Cluster) -> Any:
    """Let a member join, and return the answer to its second heartbeat."""
    first = ask(cluster, first_beat("g", "m", GIVEN), 1)
    assert first.error_code == 0, first
    return ask(cluster, beat("g", "m", first.member_epoch), 1)


def description(*, kind: int = 1, epoch: int = 2) -> StreamsGroupTopologyDescriptionUpdateRequest:
    node = TopologyDescriptionNode(name="n", node_type=kind, source_topics=["t"], successors=["o"])
    processor = TopologyDescriptionNode(name="o", node_type=2, stores=["s"])
    return StreamsGroupTopologyDescriptionUpdateRequest(
        group_id="g",
        member_id="m",
        topology_epoch=epoch,
        topology_description=TopologyDescription(
            subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])],
            global_stores=[TopologyDescriptionGlobalStore(source=node, processor=processor)],
        ),
    )


def described(cluster: Cluster) -> Any:
    (group,) = ask(cluster, describe_streams("g", with_description=True), 1).groups
    return group


def test_the_broker_creates_internal_topics(cluster: Cluster) -> None:
    answer = joined(cluster)
    assert [row.status_code for row in answer.status] == []
    assert {row.subtopology_id: row.partitions for row in answer.active_tasks} == {"0": [0, 1]}
    assert len(cluster.broker().core.image.topics_by_name["t-changelog"].partitions) == 2


@pytest.mark.parametrize(("host", "is_kept"), [("10.0.0.1", True), (IN_PROCESS_HOST, False)])
def test_a_restarted_broker_knows_its_groups(host: str, is_kept: bool, tmp_path: Path) -> None:
    """Members that ran in the former process of the broker have ended with it."""

    def told(cluster: Cluster, request: Any) -> Any:
        context = RequestContext(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, client_host=host)
        answer = cluster.broker().core.handle(context, request)
        assert not isinstance(answer, Pending)
        return answer

    with embedlog.open(tmp_path, durability="os", **SETTINGS) as cluster:
        prepare(cluster)
        epoch = told(cluster, first_beat("g", "m", GIVEN)).member_epoch
        epoch = told(cluster, beat("g", "m", epoch)).member_epoch
        before = described(cluster)
    with embedlog.open(tmp_path, durability="os", **SETTINGS) as cluster:
        after = described(cluster)
        assert after.topology.epoch == 2
        assert before.group_state == "Stable"
        assert after.group_state == ("Stable" if is_kept else "Empty")
        again = told(cluster, beat("g", "m", epoch))
        if is_kept:
            (one,), (other,) = before.members, after.members
            assert one.assignment.active_tasks[0].partitions == [0, 1]
            assert other.assignment.active_tasks[0].partitions == [0, 1]
            assert (again.error_code, again.member_epoch) == (0, epoch)
        else:
            assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_is_asked_once_for_the_description(cluster: Cluster) -> None:
    first = ask(cluster, first_beat("g", "m", GIVEN), 1)
    assert first.topology_description_required
    again = ask(cluster, beat("g", "m", first.member_epoch), 1)
    assert not again.topology_description_required, "the next time is after a pause"
    assert described(cluster).topology_description_status == 1
    assert ask(cluster, description(), 0).error_code == 0
    group = described(cluster)
    assert group.topology_description_status == 3
    (shown,) = group.topology_description.subtopologies
    assert [(node.name, node.source_topics) for node in shown.nodes] == [("n", ["t"])]
    (store,) = group.topology_description.global_stores
    assert store.processor.stores == ["s"]
    (without,) = ask(cluster, describe_streams("g"), 1).groups
    assert (without.topology_description_status, without.topology_description) == (0, None)


def test_wrong_descriptions_are_refused(cluster: Cluster) -> None:
    unknown = ask(cluster, description(), 0)
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    joined(cluster)
    for request, message in (
        (description(epoch=3), "Topology epoch 3 does not match"),
        (description(kind=4), "Unknown topology node type: 4"),
        (description(kind=3), "Global store must be composed"),
    ):
        answer = ask(cluster, request, 0)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.error_message.startswith(message)
    for field in ("group_id", "member_id"):
        request = description()
        setattr(request, field, " ")
        assert ask(cluster, request, 0).error_code == ErrorCode.INVALID_REQUEST
    assert not Shelf.kept


def test_a_plugin_that_fails_for_now_is_tried_again_later(cluster: Cluster) -> None:
    joined(cluster)
    Shelf.error = OSError("the disk is full")
    answer = ask(cluster, description(), 0)
    assert answer.error_code == ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    assert answer.error_message == "the disk is full"
    Shelf.error = None
    assert described(cluster).topology_description_status == 1
    assert ask(cluster, description(), 0).error_code == 0
    Shelf.error = OSError()
    assert described(cluster).topology_description_status == 2


def test_a_plugin_may_refuse_a_description_for_ever(cluster: Cluster) -> None:
    joined(cluster)
    Shelf.error = errors.StreamsTopologyDescriptionUpdateFailed("too large")
    answer = ask(cluster, description(), 0)
    assert answer.error_code == ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    again = ask(cluster, first_beat("g", "n", GIVEN), 1)
    assert not again.topology_description_required


def test_the_plugin_forgets_a_deleted_group(cluster: Cluster) -> None:
    answer = joined(cluster)
    assert ask(cluster, description(), 0).error_code == 0
    delete = DeleteGroupsRequest(groups_names=["g"])
    assert ask(cluster, delete, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    assert Shelf.kept
    ask(cluster, beat("g", "m", -1), 1)
    Shelf.error = OSError()
    assert ask(cluster, delete, 2).results[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert ask(cluster, delete, 3).results[0].error_code == ErrorCode.GROUP_DELETION_FAILED
    Shelf.error = None
    assert ask(cluster, delete, 2).results[0].error_code == 0
    assert not Shelf.kept
    assert described(cluster).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_code == 0


def test_the_plugin_forgets_an_expired_group(cluster: Cluster) -> None:
    joined(cluster)
    assert ask(cluster, description(), 0).error_code == 0
    ask(cluster, beat("g", "m", -1), 1)
    coordinator = cluster.broker().core.group_coordinator
    coordinator.expire_offsets()
    assert not Shelf.kept
    assert described(cluster).error_code == 0, "it goes at the next check"
    coordinator.expire_offsets()
    assert described(cluster).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("name", ["nothing", "no.such.Module", f"{__name__}.NoSuchClass"])
def test_a_plugin_that_cannot_be_loaded_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="plugin.class"):
        load_plugin(name)
    with opened(group_streams_topology_description_plugin_class=name) as cluster:
        answer = ask(cluster, first_beat("g", "m", GIVEN), 1)
        assert answer.error_code == ErrorCode.INVALID_CONFIG


def test_pauses_between_requests_double() -> None:
    runtime = sim_runtime()
    shelf = Descriptions(Shelf(), runtime.clock, runtime.random)
    assert shelf.ask("g", 1)
    assert not shelf.ask("g", 1)
    assert shelf.ask("g", 2), "another topology"
    runtime.scheduler.run_for(36_001)
    assert shelf.ask("g", 2)
    runtime.scheduler.run_for(36_001)
    assert not shelf.ask("g", 2)
    runtime.scheduler.run_for(36_001)
    assert shelf.ask("g", 2)
    Shelf.error = OSError()
    with pytest.raises(PassingFailure):
        shelf.set("g", 2, TopologyDescription())
    shelf.stored("g")
    assert shelf.ask("g", 2)
