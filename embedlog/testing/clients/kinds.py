"""What each client's settings are called, and the values with which it does not wait in tests.

A client's defaults suit a cluster of a company: it collects records before it sends them, pauses
before it connects again, and a member of a group learns of a rebalance at its next heartbeat, 3 s
later. Each value here ends one of these waits. Nothing here changes the promises of a client (acks,
isolation, assignors), except for one: a consumer begins at the earliest record, because a test
often produces before its consumer has joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]


def _text(addresses: str) -> Any:
    return addresses


def _list(addresses: str) -> Any:
    return addresses.split(",")


def _with_dots(name: str) -> str:
    return name.replace("_", ".")


def _of_confluent(name: str) -> str:
    """Return the setting's name; the names of confluent-kafka's callbacks have no dots."""
    is_callback = name.endswith("_cb") or name in ("on_delivery", "on_commit")
    return name if is_callback else _with_dots(name)


def _as_given(name: str) -> str:
    return name


@dataclass(frozen=True, kw_only=True)
class ClientKind:
    """The settings of one client library."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other names of the library, and libraries with the same settings."""
    bootstrap: str
    """The setting for the addresses."""
    addresses: Callable[[str], Any] = _text
    """Turns `host:port,host:port` into the value of that setting."""
    group: str
    """The setting for the group's id."""
    common: Settings = field(default_factory=dict)
    """Settings of every client."""
    roles: Mapping[str, Settings] = field(default_factory=dict)
    """Role -> settings that only this kind of client takes."""
    is_per_role: bool = False
    """True if the common settings belong to a parent object, and a role takes only its own."""
    named: Callable[[str], str] = _as_given
    """Turns the name of a keyword argument into the name of a setting."""
    converted: Callable[[Any], Any] = _as_given
    """Turns a value into the type that the client takes."""
    not_with_new_groups: tuple[str, ...] = ()
    """Settings that the client refuses with group.protocol=consumer."""


def _java_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_LIBRDKAFKA = ClientKind(
    name="confluent",
    aliases=(
        "confluent-kafka",
        "librdkafka",
        "rdkafka",
        "node-rdkafka",
        "kcat",
        "confluent-kafka-javascript",
    ),
    bootstrap="bootstrap.servers",
    group="group.id",
    common={
        # Half of it is also the pause between two first connections. A group of one needs two:
        # with the default of 100 ms it waits 43 ms for the second.
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
        # The pause between two questions for the leader of a partition: 100 ms.
        "topic.metadata.refresh.fast.interval.ms": 20,
        "socket.nagle.disable": True,
        # Do not print that the cluster has closed a connection.
        "log.connection.close": False,
    },
    roles={
        "producer": {"linger.ms": 0},
        # One wait is left: a group without committed offsets looks up where it begins only after
        # 100 ms, which is a constant of librdkafka. A program that cannot wait commits offsets
        # before, or assigns partitions with offsets in `on_assign`.
        "consumer": {
            "auto.offset.reset": "earliest",
            # A rebalance reaches the other members with their next heartbeat: after 3 s.
            "heartbeat.interval.ms": 100,
            # A seek or a pause waits for the end of an empty fetch: 500 ms.
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 20,
        },
        "admin": {},
    },
    named=_of_confluent,
    not_with_new_groups=("heartbeat.interval.ms",),
)

_KAFKA_PYTHON = ClientKind(
    name="kafka-python",
    aliases=("kafka-python-ng", "kafka"),
    bootstrap="bootstrap_servers",
    addresses=_list,
    group="group_id",
    common={"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 20},
    roles={
        "producer": {"linger_ms": 0},
        "consumer": {
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
        },
        "admin": {},
    },
)

_AIOKAFKA = ClientKind(
    name="aiokafka",
    bootstrap="bootstrap_servers",
    group="group_id",
    common={"retry_backoff_ms": 20},
    roles={
        "producer": {"linger_ms": 0},
        "consumer": {
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
        },
        "admin": {},
    },
)

_JAVA = ClientKind(
    name="java",
    aliases=("kafka-clients", "scala", "kotlin"),
    bootstrap="bootstrap.servers",
    group="group.id",
    common={
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 200,
    },
    roles={
        "producer": {
            "linger.ms": 0,
            # The constructor needs them, unless it gets serializers as objects.
            "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        },
        "consumer": {
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "fetch.max.wait.ms": 100,
            "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
            "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        },
        "admin": {},
    },
    named=_with_dots,
    converted=_java_text,
    not_with_new_groups=("heartbeat.interval.ms",),
)

_KAFKAJS = ClientKind(
    name="kafkajs",
    bootstrap="brokers",
    addresses=_list,
    group="groupId",
    common={"clientId": "test", "retry": {"initialRetryTime": 20, "maxRetryTime": 200}},
    # `new Kafka(...)` takes the common settings, `kafka.producer(...)` and `kafka.consumer(...)`
    # take the settings of the role.
    roles={
        "producer": {"allowAutoTopicCreation": True},
        "consumer": {"heartbeatInterval": 100, "maxWaitTimeInMs": 100},
        "admin": {},
    },
    is_per_role=True,
)

_FRANZ_GO = ClientKind(
    name="franz-go",
    aliases=("franz", "kgo"),
    # Each name is an option of package kgo, `kgo.SeedBrokers(...)`, and its value the arguments.
    # Durations are texts for `time.ParseDuration`.
    bootstrap="SeedBrokers",
    addresses=_list,
    group="ConsumerGroup",
    common={
        # A client asks again for a missing topic only after this time: 5 s.
        "MetadataMinAge": "20ms",
    },
    roles={
        "producer": {"ProducerLinger": "0s"},
        "consumer": {"HeartbeatInterval": "100ms", "FetchMaxWait": "100ms"},
        "admin": {},
    },
)

_EMBEDLOG = ClientKind(
    name="embedlog",
    bootstrap="bootstrap_servers",
    group="group_id",
    common={"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": 20},
    roles={
        "producer": {"linger_ms": 0},
        "consumer": {
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            "fetch_max_wait_ms": 100,
        },
        "admin": {},
    },
)

KINDS = (_LIBRDKAFKA, _KAFKA_PYTHON, _AIOKAFKA, _JAVA, _KAFKAJS, _FRANZ_GO, _EMBEDLOG)
"""Every known library."""
