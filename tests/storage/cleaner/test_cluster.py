"""Compaction in a broker: driven by any waiting thread, and of the broker's own topics as well."""

from __future__ import annotations

from embedlog import NewTopic
from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.storage.log.log import Log
from embedlog.testing import SimRuntime, sim_runtime
from tests.apis.ask import ask
from tests.storage.cleaner.compaction import check_compacted, rows
from tests.support.offsets import commit, fetch, fetched
from wire.schemas.find_coordinator import FindCoordinatorRequest

OFFSETS = TopicPartition("__consumer_offsets", 0)


def _open(runtime: SimRuntime, **settings: object) -> Cluster:
    texts = {name.replace("_", "."): value for name, value in settings.items()}
    return Cluster("data", texts, durability="os", runtime=runtime)


def _log(cluster: Cluster, partition: TopicPartition) -> Log:
    log = cluster.broker().core.log_manager.get(partition)
    assert log is not None
    return log


def test_a_compacted_topic_is_cleaned_while_clients_wait() -> None:
    runtime = sim_runtime()
    with _open(runtime) as cluster:
        with cluster.admin() as admin:
            configs = {"cleanup.policy": "compact", "segment.ms": "1000"}
            admin.create_topics([NewTopic("c", 1, configs=configs)]).check()
        with cluster.producer() as producer:
            for number in range(30):
                producer.send("c", b"%d" % number, key=b"k%d" % (number % 3)).result()
                runtime.clock.advance(200)
        log = _log(cluster, TopicPartition("c", 0))
        first_active = log.segments[-1].base_offset
        with cluster.consumer() as consumer:
            consumer.assign([TopicPartition("c", 0)])
            consumer.seek_to_end()
            assert not consumer.poll(60_000)
            consumer.seek_to_beginning()
            found: list[int] = []
            while len(found) < 30 - first_active + 3:
                found += [record.offset for record in consumer.poll(1000)]
        assert found == [*range(first_active - 3, 30)]
        assert log.offsets.cleaned_offset == first_active


def test_committed_offsets_take_room_for_the_last_commit_only() -> None:
    runtime = sim_runtime()
    settings = {
        "offsets_topic_num_partitions": 1,
        "log_roll_ms": 1000,
    }
    with _open(runtime, **settings) as cluster:
        with cluster.admin() as admin:
            admin.create_topics({"t": 2}).check()
        ask(cluster, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        for number in range(200):
            ask(cluster, commit("g", {("t", number % 2): number}), 8)
            runtime.clock.advance(100)
        log = _log(cluster, OFFSETS)
        assert len(log.segments) > 5
        before = log.size
        with cluster.consumer() as consumer:
            consumer.assign([TopicPartition("t", 0)])
            consumer.poll(60_000)
        assert log.size < before / 4
        check_compacted(log)
        kept = [offset for offset, _, _ in rows(log) if offset < log.offsets.cleaned_offset]
        assert len(kept) == 2
    with _open(sim_runtime(files=runtime.files.survivor()), **settings) as cluster:
        ask(cluster, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        assert fetched(ask(cluster, fetch("g"), 8)) == {("t", 0): 198, ("t", 1): 199}
