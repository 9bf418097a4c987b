"""Configuration of the clients: Kafka's keys, types and defaults; `parse_settings` applies them.

A key may be written with dots in a dict or with underscores as a keyword argument: `{"linger.ms":
5}` is `linger_ms=5`. Values may be text, as in a properties file. An unknown key, or a key without
effect, causes a warning at the user's line; a wrong value raises `ConfigError`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from typing import Any

    # kind, default, rule: (lowest, highest) of a number, or the allowed words of a choice
    Definition = tuple[str, Any, Any]
    Definitions = Mapping[str, Definition]
    Settings = dict[str, Any]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
NATURAL = (0, INT_MAX)

COMMON: Definitions = {
    "bootstrap.servers": ("list", None, None),
    "client.id": ("text", "", None),
    "client.dns.lookup": (
        "choice",
        "use_all_dns_ips",
        ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    "connections.max.idle.ms": ("int", 540_000, (-1, INT_MAX)),
    "metadata.cluster.check.enable": ("bool", True, None),
    "metadata.max.age.ms": ("int", 300_000, NATURAL),
    "metadata.recovery.rebootstrap.trigger.ms": ("int", 300_000, NATURAL),
    "metadata.recovery.strategy": ("choice", "rebootstrap", ("none", "rebootstrap")),
    # Kafka's clients set fixed sizes, 32 or 64 KiB and 128 KiB; -1 lets the system choose and grow
    # them.
    "receive.buffer.bytes": ("int", -1, (-1, INT_MAX)),
    "send.buffer.bytes": ("int", -1, (-1, INT_MAX)),
    "reconnect.backoff.ms": ("int", 50, NATURAL),
    "reconnect.backoff.max.ms": ("int", 1_000, NATURAL),
    "request.timeout.ms": ("int", 30_000, NATURAL),
    "retry.backoff.ms": ("int", 100, NATURAL),
    "retry.backoff.max.ms": ("int", 1_000, NATURAL),
    "security.protocol": (
        "choice",
        "PLAINTEXT",
        ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    "sasl.mechanism": ("choice", None, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
    "sasl.jaas.config": ("secret", None, None),
    "sasl.username": ("secret", None, None),
    "sasl.password": ("secret", None, None),
    # Kafka's default for both types is JKS, which only Java can read.
    "ssl.truststore.type": ("choice", "PEM", ("PEM",)),
    "ssl.truststore.location": ("text", None, None),
    "ssl.truststore.certificates": ("text", None, None),
    "ssl.keystore.type": ("choice", "PEM", ("PEM",)),
    "ssl.keystore.location": ("text", None, None),
    "ssl.keystore.certificate.chain": ("text", None, None),
    "ssl.keystore.key": ("secret", None, None),
    "ssl.key.location": ("text", None, None),
    "ssl.key.password": ("secret", None, None),
    "ssl.endpoint.identification.algorithm": ("choice", "https", ("https", "none", "")),
    "enable.ssl.certificate.verification": ("bool", True, None),
    "ssl.enabled.protocols": ("list", ["TLSv1.2", "TLSv1.3"], None),
    "ssl.cipher.suites": ("list", [], None),
    "socket.connection.setup.timeout.ms": ("int", 10_000, NATURAL),
    "socket.connection.setup.timeout.max.ms": ("int", 30_000, NATURAL),
}

PRODUCER: Definitions = {
    **COMMON,
    "acks": ("choice", None, ("all", "-1", "0", "1")),
    "batch.size": ("int", None, NATURAL),
    "buffer.memory": ("int", 33_554_432, (0, LONG_MAX)),
    "compression.type": ("choice", "none", ("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.gzip.level": ("int", None, (-1, 9)),
    "compression.lz4.level": ("int", None, (1, 17)),
    "compression.zstd.level": ("int", None, (-131_072, 22)),
    "delivery.timeout.ms": ("int", None, NATURAL),
    "enable.idempotence": ("bool", None, None),
    "interceptor.classes": ("objects", (), None),
    "key.serializer": ("converter", None, None),
    "linger.ms": ("int", None, NATURAL),
    "max.block.ms": ("int", 60_000, (0, LONG_MAX)),
    "max.in.flight.requests.per.connection": ("int", 5, (1, INT_MAX)),
    "max.request.size": ("int", 1_048_576, NATURAL),
    "metadata.max.idle.ms": ("int", 300_000, (5_000, LONG_MAX)),
    "partitioner.adaptive.partitioning.enable": ("bool", True, None),
    "partitioner.availability.timeout.ms": ("int", 0, (0, LONG_MAX)),
    "partitioner.class": ("object", None, None),
    "partitioner.ignore.keys": ("bool", False, None),
    "retries": ("int", None, NATURAL),
    "transaction.timeout.ms": ("int", None, (1, INT_MAX)),
    "transaction.two.phase.commit.enable": ("bool", False, None),
    "transactional.id": ("text", None, None),
    "value.serializer": ("converter", None, None),
}

CONSUMER: Definitions = {
    **COMMON,
    "allow.auto.create.topics": ("bool", True, None),
    "auto.commit.interval.ms": ("int", 5_000, NATURAL),
    "auto.offset.reset": ("text", "latest", None),
    "check.crcs": ("bool", True, None),
    "client.rack": ("text", "", None),
    "default.api.timeout.ms": ("int", 60_000, NATURAL),
    "enable.auto.commit": ("bool", None, None),
    "exclude.internal.topics": ("bool", True, None),
    "fetch.max.bytes": ("int", 52_428_800, NATURAL),
    "fetch.max.wait.ms": ("int", 500, NATURAL),
    "fetch.min.bytes": ("int", 1, NATURAL),
    "group.id": ("text", None, None),
    "group.instance.id": ("text", None, None),
    "group.protocol": ("choice", "classic", ("classic", "consumer")),
    "group.remote.assignor": ("text", None, None),
    "heartbeat.interval.ms": ("int", None, (1, INT_MAX)),
    "interceptor.classes": ("objects", (), None),
    "isolation.level": ("choice", "read_uncommitted", ("read_uncommitted", "read_committed")),
    "key.deserializer": ("converter", None, None),
    "max.partition.fetch.bytes": ("int", 1_048_576, NATURAL),
    "max.poll.interval.ms": ("int", 300_000, (1, INT_MAX)),
    "max.poll.records": ("int", 500, (1, INT_MAX)),
    "partition.assignment.strategy": ("objects", None, None),
    "session.timeout.ms": ("int", None, (1, INT_MAX)),
    "value.deserializer": ("converter", None, None),
}

ADMIN: Definitions = {
    **COMMON,
    "default.api.timeout.ms": ("int", 60_000, NATURAL),
    "retries": ("int", INT_MAX, NATURAL),
}


class Parsed(dict[str, "Any"]):
    """Settings, and in `given` the names that the user has set."""

    __slots__ = ("given",)

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self.given: list[str] = []


def warn_idle(settings: Settings, names: Container[str], reason: str) -> None:
    """Warn of each of `names` that the user has set although it has no effect; say the `reason`."""
    idle = [name for name in sorted(set(getattr(settings, "given", ()))) if name in names]
    if idle:
        from embedlog.user_warnings import warn_user

        warn_user(f"no effect of {', '.join(map(repr, idle))}: {reason}")
