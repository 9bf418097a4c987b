"""Resources of one broker: its settings and its directories, requested from it and from others."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import creation, produce
from tests.golden.scenarios.configs import (
    BROKER,
    DELETE,
    LOGGER,
    SET,
    TOPIC,
    described,
    incremental,
)
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.support.kafka_cluster import BROKERS
from wire.schemas.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

KEYS = ["background.threads", "broker.rack", "node.id", "min.insync.replicas", "log.retention.ms"]
SETTLE_MS = 300


def _described(*nodes: str) -> object:
    return described(*((BROKER, node) for node in nodes), keys=KEYS, synonyms=True)


@scenario_on("calm")
def settings_of_brokers(cluster: ClusterRun) -> None:
    for version in (1, 4):
        for node in BROKERS:
            for name in ("1", "2", "3", "", "9"):
                cluster[node].send(_described(name), version, f"of broker {name!r}")
        cluster[1].send(_described("1", "2"), version, "of two brokers")
        loggers = described((LOGGER, "2"), keys=["none"])
        for node in (1, 2):
            cluster[node].send(loggers, version, "the loggers of broker 2")
    for version in (0, 1):
        for node, name in ((1, "1"), (1, "2"), (2, "3"), (3, "9"), (3, "x")):
            request = incremental(BROKER, name, ("background.threads", SET, "7"))
            cluster[node].send(request, version, f"set for broker {name!r}")
            request = incremental(BROKER, name, ("node.id", SET, "7"))
            cluster[node].send(request, version, f"a fixed one for broker {name!r}")
    whole = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=BROKER,
                resource_name="2",
                configs=[AlterableConfig(name="background.threads", value="8")],
            )
        ]
    )
    for node in (1, 2):
        for version in (0, 2):
            cluster[node].send(whole, version, "all that is set for broker '2'")
    cluster[3].send(incremental(BROKER, "", ("background.threads", SET, "9")), 1, "set for all")
    cluster.let_pass(SETTLE_MS)
    for node in BROKERS:
        cluster[node].send(_described(str(node)), 4, "each of itself")
    for name in ("1", "2", "3", ""):
        node = int(name or 1)
        request = incremental(BROKER, name, ("background.threads", DELETE, None))
        cluster[node].send(request, 1, f"no more for broker {name!r}")
    cluster.let_pass(SETTLE_MS)
    for node in BROKERS:
        cluster[node].send(_described(str(node)), 4, "each of itself, as before")


@scenario_on("calm")
def settings_of_topics_elsewhere(cluster: ClusterRun) -> None:
    name, _ = cluster.topic("t", [1])
    keys = ["retention.ms", "min.insync.replicas", "unclean.leader.election.enable"]
    for node in BROKERS:
        cluster[node].send(described((TOPIC, name), keys=keys), 4, "as it was made")
    change = incremental(TOPIC, name, ("min.insync.replicas", SET, "3"))
    cluster[2].send(change, 1, "more than there are replicas")
    change = incremental(TOPIC, name, ("unclean.leader.election.enable", SET, "true"))
    cluster[3].send(change, 1, "at another broker")
    cluster.let_pass(SETTLE_MS)
    for node in BROKERS:
        cluster[node].send(described((TOPIC, name), keys=keys), 4, "as it is")
    cluster[1].send(produce((name, bytes(16)), 9, simple(b"a")), 9, "one replica is enough")
    for value in ("4", "0", "-1"):
        request = creation(
            cluster.topic_name("z"), replication=3, configs={"min.insync.replicas": value}
        )
        cluster[2].send(request, 7, f"a minimum of {value} of three")


@scenario_on("calm")
def directories_of_brokers(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2], [2, 3])
    cluster[1].setup(produce(topic, 9, simple(b"a", b"b")), 9)
    cluster.reaches(2, topic, 2, keep=False)
    row = DescribableLogDirTopic(topic=topic[0], partitions=[0, 1, 7])
    unknown = DescribableLogDirTopic(topic=cluster.topic_name("unknown"), partitions=[0])
    for version in range(1, 6):
        for node in BROKERS:
            request = DescribeLogDirsRequest(topics=[row])
            cluster[node].send(request, version, "three partitions of a topic")
    cluster[3].send(DescribeLogDirsRequest(topics=[unknown]), 4, "an unknown topic")

    def moved(path: str, name: str, *partitions: int) -> AlterReplicaLogDirsRequest:
        into = AlterReplicaLogDirTopic(name=name, partitions=list(partitions))
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[into])])

    own = {
        node: cluster[node].setup(DescribeLogDirsRequest(topics=[row]), 4).results[0].log_dir
        for node in BROKERS
    }
    for version in (1, 2):
        for node in BROKERS:
            broker = cluster[node]
            broker.send(moved(own[node], topic[0], 0, 1), version, "to where it is")
            broker.send(moved("/no/such/directory", topic[0], 0, 1), version, "to nowhere")
            broker.send(moved("relative", topic[0], 0), version, "to a relative path")
            broker.send(moved("", topic[0], 0), version, "to an empty path")
        broker = cluster[1]
        broker.send(moved(own[1], topic[0], 7), version, "no partition 7")
        broker.send(moved(own[1], cluster.topic_name("unknown"), 0), version, "an unknown topic")
        broker.send(AlterReplicaLogDirsRequest(), version, "nothing")
        both = AlterReplicaLogDirsRequest(
            dirs=[*moved(own[1], topic[0], 0).dirs, *moved("/nowhere", topic[0], 0).dirs]
        )
        broker.send(both, version, "the same partition twice")
