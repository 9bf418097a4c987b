"""End offsets of partitions: from their leaders, or an error code for each."""

from __future__ import annotations

from embedlog.broker.end_offsets import end_offsets
from embedlog.cluster.cluster import Cluster
from embedlog.testing import sim_runtime
from wire.error_codes import ErrorCode


def test_the_only_broker_knows_its_ends() -> None:
    with Cluster(runtime=sim_runtime()) as cluster:
        cluster.create_topic("t", 2)
        with cluster.producer() as producer:
            producer.append("t", b"v", partition=1)
        found = end_offsets(cluster.broker().core, [("t", 1), ("t", 0), ("t", 1), ("u", 0)])
        unknown = ErrorCode.LEADER_NOT_AVAILABLE
        assert found.result() == {("t", 1): (0, 1), ("t", 0): (0, 0), ("u", 0): (unknown, -1)}


def test_each_leader_is_asked_and_a_silent_one_is_an_error() -> None:
    with Cluster(brokers=3, runtime=sim_runtime()) as cluster:
        cluster.create_topic("t", 6, replication_factor=1)
        places = [("t", number) for number in range(6)]
        leaders = {n: cluster.broker(1).core.image.partition("t", n).leader for n in range(6)}
        assert set(leaders.values()) == {1, 2, 3}
        core = cluster.broker(1).core
        found = end_offsets(core, places)
        assert cluster.runtime.scheduler.wait(found, 1000)
        assert set(found.result().values()) == {(0, 0)}
        cluster.broker(2).pause()
        found = end_offsets(core, places)
        assert cluster.runtime.scheduler.wait(found, 60_000)
        codes = {place: code for place, (code, _) in found.result().items()}
        assert {n for n, leader in leaders.items() if leader == 2} == {
            n for (_, n), code in codes.items() if code
        }
