"""Share groups and the leaders of their partitions: the wrong broker, and a new leader."""

from __future__ import annotations

from embedlog.common import uuid_to_text
from tests.golden.requests import Topic
from tests.golden.sharing_requests import (
    ACCEPT,
    RELEASE,
    Sharer,
    fill,
    initialize,
)
from tests.golden.three_brokers.requests import PREFERRED, elect, reassigned
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.support.kafka_cluster import BROKERS
from wire.schemas.find_coordinator import FindCoordinatorRequest


def begin(cluster: ClusterRun, group: str, topic: Topic) -> None:
    """Initialise the state of partition 0 at its coordinator, without a step."""
    key = f"{group}:{uuid_to_text(topic[1])}:0"
    find = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    while (found := cluster[1].setup(find, 6).coordinators[0]).error_code:
        cluster.let_pass(50)
    request = initialize(group, topic, 0)
    while cluster[found.node_id].setup(request, 0).results[0].partitions[0].error_code:
        cluster.let_pass(50)


@scenario_on("failing")
def share_partition_gets_another_leader(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2, 3])
    group, place = cluster.group("g"), (topic, 0)
    begin(cluster, group, topic)
    fill(cluster[1], topic, 6)
    one = {node: Sharer(cluster[node], group) for node in BROKERS}
    one[1].fetch("lock all", place)
    one[1].acknowledge("accept one, release one", {place: [(0, 1, [ACCEPT, RELEASE])]})
    one[3].fetch("at a follower", place, max_wait_ms=300)
    one[3].acknowledge("at a follower", {place: [(2, 2, [ACCEPT])]})
    cluster[1].setup(reassigned((topic, 0, [2, 1, 3])), 0)
    cluster.see(topic, replicas=[2, 1, 3], keep=False)
    cluster[1].setup(elect(PREFERRED, (topic, 0)), 2)
    cluster.see(topic, leader=2, isr=[1, 2, 3], keep=False)
    one[1].acknowledge("at the former leader", {place: [(2, 3, [ACCEPT])]})
    one[1].fetch("at the former leader", max_wait_ms=300)
    one[3].fetch("at a follower again", max_wait_ms=300)
    one[2].fetch("the new leader has the stored counts", place)
    one[2].acknowledge("accept the rest", {place: [(1, 5, [ACCEPT])]})
    one[2].fetch("nothing is left", max_wait_ms=100)
    for node in BROKERS:
        one[node].fetch(f"close at broker {node}", epoch=-1)


@scenario_on("failing")
def share_partition_loses_its_leader(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2], [3, 2])
    group, place = cluster.group("g"), (topic, 0)
    begin(cluster, group, topic)
    fill(cluster[1], topic, 4)
    one = {node: Sharer(cluster[node], group) for node in BROKERS}
    one[1].fetch("lock all", place)
    one[1].acknowledge("accept two", {place: [(0, 1, [ACCEPT])]})
    cluster.stop(1)
    cluster.see(topic, leader=2, keep=False)
    one[2].fetch("the new leader has what was stored", place, max_wait_ms=10_000)
    one[2].acknowledge("accept", {place: [(2, 2, [ACCEPT])]})
    cluster.start(1)
    cluster.see(topic, isr=[1, 2], keep=False)
    cluster[2].setup(elect(PREFERRED, (topic, 0)), 2)
    cluster.see(topic, leader=1, keep=False)
    one[2].fetch("the former leader", max_wait_ms=300)
    again = Sharer(cluster[1], group)
    again.fetch("its session has gone", epoch=3)
    again.fetch("the last record", place, max_wait_ms=10_000)
    again.acknowledge("accept it", {place: [(3, 3, [ACCEPT])]})
