"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.golden.requests import make_topic
from tests.golden.run import Run, scenario
from wire.schemas.alter_configs import AlterableConfig as LegacyConfig
from wire.schemas.alter_configs import AlterConfigsRequest
from wire.schemas.alter_configs import AlterConfigsResource as LegacyResource
from wire.schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def described(
    *resources: tuple[int, str], keys: list[str] | None = None, synonyms: bool = False
) -> DescribeConfigsRequest:
    """DescribeConfigs of (type, name)."""
    rows = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    return DescribeConfigsRequest(resources=rows, include_synonyms=synonyms)


@scenario
def describe_topic_configs(run: Run) -> None:
    plain, _ = make_topic(run, "a")
    changed, _ = make_topic(
        run, "b", retention_ms="1000", cleanup_policy="compact,delete", compression_type="lz4"
    )
    for version in range(1, 5):
        run.send(described((TOPIC, plain)), version, "all of a topic")
        run.send(described((TOPIC, changed), synonyms=True), version, "changed, with synonyms")
        keys = ["retention.ms", "no.such.config"]
        run.send(described((TOPIC, changed), keys=keys), version, "two keys, one unknown")
        run.send(described((TOPIC, plain), keys=[]), version, "no keys")
        run.send(described((TOPIC, run.topic("none"))), version, "unknown topic")
        run.send(described((TOPIC, "a b")), version, "illegal topic name")
        run.send(described((TOPIC, "")), version, "empty topic name")
        run.send(described((TOPIC, plain), (TOPIC, changed), keys=["retention.ms"]),
                 version, "two topics")  # fmt: skip
        run.send(described((77, "x")), version, "unknown resource type")


@scenario
def describe_broker_configs(run: Run) -> None:
    keys = [
        "message.max.bytes", "log.retention.ms", "log.retention.hours", "num.partitions",
        "auto.create.topics.enable", "log.segment.bytes", "compression.type", "min.insync.replicas",
        "log.cleaner.threads", "ssl.keystore.password", "socket.request.max.bytes",
        "connections.max.idle.ms", "default.replication.factor", "log.flush.interval.messages",
        "offsets.retention.minutes", "group.max.session.timeout.ms", "node.id",
        "delete.topic.enable", "log.cleanup.policy", "background.threads", "no.such.config",
    ]  # fmt: skip
    for version in range(1, 5):
        run.send(described((BROKER, "1"), keys=keys, synonyms=True), version, "broker 1")
        run.send(described((BROKER, "9"), keys=keys), version, "broker 9")
        run.send(described((BROKER, "x"), keys=keys), version, "broker x")
        run.send(described((BROKER, ""), keys=keys), version, "the cluster's default")
        run.send(described((GROUP, run.topic("group"))), version, "group defaults")
        run.send(described((METRICS, run.topic("metrics"))), version, "client metrics")


def incremental(
    kind: int, name: str, *rows: tuple[str, int, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """IncrementalAlterConfigs of one resource; rows are (key, operation, value)."""
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in rows
    ]
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)],
        validate_only=validate_only,
    )


SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@scenario
def incremental_alter_configs(run: Run) -> None:
    for version in (0, 1):
        name, _ = make_topic(run, f"v{version}")
        steps: list[tuple[str, Sequence[tuple[str, int, str | None]]]] = [
            ("set", [("retention.ms", SET, "5000")]),
            ("set two", [("segment.ms", SET, "60000"), ("compression.type", SET, "gzip")]),
            ("delete", [("segment.ms", DELETE, None)]),
            ("delete what is not set", [("flush.ms", DELETE, None)]),
            ("delete an unknown key", [("no.such.config", DELETE, None)]),
            ("append", [("cleanup.policy", APPEND, "compact")]),
            ("append again", [("cleanup.policy", APPEND, "compact")]),
            ("subtract", [("cleanup.policy", SUBTRACT, "delete")]),
            ("append to a number", [("retention.ms", APPEND, "1")]),
            ("subtract from a number", [("retention.ms", SUBTRACT, "1")]),
            ("unknown key", [("no.such.config", SET, "1")]),
            ("wrong value", [("retention.ms", SET, "x")]),
            ("one right, one wrong", [("flush.ms", SET, "9"), ("segment.ms", SET, "-1")]),
            ("null for set", [("retention.ms", SET, None)]),
            ("null for append", [("cleanup.policy", APPEND, None)]),
            ("the same key twice", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]),
            ("operation 4", [("retention.ms", 4, "1")]),
            ("operation -1", [("retention.ms", -1, "1")]),
            ("nothing", []),
        ]
        for note, rows in steps:
            run.send(incremental(TOPIC, name, *rows), version, note)
        dry = incremental(TOPIC, name, ("retention.ms", SET, "7"), validate_only=True)
        run.send(dry, version, "validate only")
        run.send(described((TOPIC, name), keys=["retention.ms", "cleanup.policy", "flush.ms",
                                                "segment.ms", "compression.type"]),
                 4, "what is left of it")  # fmt: skip
        change = ("retention.ms", SET, "5000")
        run.send(incremental(TOPIC, run.topic("none"), change), version, "unknown topic")
        run.send(incremental(TOPIC, "", change), version, "empty topic name")
        run.send(incremental(77, "x", change), version, "unknown resource type")
        run.send(incremental(BROKER, "9", ("log.cleaner.threads", SET, "1")), version, "broker 9")
        run.send(incremental(BROKER, "1", ("no.such", SET, "1")), version, "unknown on a broker")
        run.send(incremental(BROKER, "1", ("node.id", SET, "1")), version, "read-only on a broker")
        wrong = ("log.cleaner.threads", SET, "x")
        run.send(incremental(BROKER, "1", wrong), version, "wrong value on a broker")
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[])
        twice = IncrementalAlterConfigsRequest(resources=[resource, resource])
        run.send(twice, version, "the same resource twice")


@scenario
def broker_configs_change(run: Run) -> None:
    name, _ = make_topic(run)
    for resource in ("1", ""):
        change = incremental(BROKER, resource, ("log.retention.ms", SET, "777000"))
        run.send(change, 1, f"retention of broker {resource!r}")
        run.send(
            described((BROKER, "1"), keys=["log.retention.ms"], synonyms=True), 4, "the broker's"
        )
        run.send(described((TOPIC, name), keys=["retention.ms"], synonyms=True), 4, "a topic's")
        back = incremental(BROKER, resource, ("log.retention.ms", DELETE, None))
        run.send(back, 1, f"back again for broker {resource!r}")


@scenario
def alter_configs(run: Run) -> None:
    def alter(
        kind: int, name: str, configs: dict[str, str | None], validate_only: bool = False
    ) -> AlterConfigsRequest:
        rows = [LegacyConfig(name=key, value=value) for key, value in configs.items()]
        resource = LegacyResource(resource_type=kind, resource_name=name, configs=rows)
        return AlterConfigsRequest(resources=[resource], validate_only=validate_only)

    for version in range(3):
        name, _ = make_topic(run, f"v{version}", retention_ms="5000")
        run.send(alter(TOPIC, name, {"segment.ms": "60000"}), version, "replaces everything")
        keys = ["retention.ms", "segment.ms"]
        run.send(described((TOPIC, name), keys=keys), 4, "what is left of it")
        run.send(alter(TOPIC, name, {"segment.ms": "x"}), version, "wrong value")
        run.send(alter(TOPIC, name, {"no.such.config": "x"}), version, "unknown key")
        run.send(alter(TOPIC, name, {"segment.ms": None}), version, "null value")
        run.send(alter(TOPIC, name, {}, validate_only=True), version, "validate only")
        run.send(described((TOPIC, name), keys=keys), 4, "still there")
        run.send(alter(TOPIC, run.topic("none"), {}), version, "unknown topic")
        run.send(alter(77, "x", {}), version, "unknown resource type")
        run.send(alter(TOPIC, name, {}), version, "to defaults")
        run.send(described((TOPIC, name), keys=keys), 4, "defaults again")
