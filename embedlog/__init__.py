"""An embeddable, in-process message log with Kafka wire compatibility.

    import embedlog

    with embedlog.open("data") as cluster:              # a directory; without: in memory
        with cluster.producer() as producer:
            producer.send("events", b"value", key=b"key").result()

        listener = cluster.listen("127.0.0.1", 9092)    # now any Kafka client can connect

Importing this loads next to nothing: what is named here is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.cluster import Cluster, open
    from embedlog.client.admin import Admin
    from embedlog.client.consumer import Consumer
    from embedlog.client.producer import Producer
    from embedlog.common import TopicPartition
    from embedlog.errors import (
        ClosedError,
        ConfigError,
        CorruptRecord,
        DirectoryLocked,
        EmbedlogError,
        KafkaError,
        StorageFailed,
        TimedOut,
    )

__all__ = [
    "Admin",
    "ClosedError",
    "Cluster",
    "ConfigError",
    "Consumer",
    "CorruptRecord",
    "DirectoryLocked",
    "EmbedlogError",
    "KafkaError",
    "Producer",
    "StorageFailed",
    "TimedOut",
    "TopicPartition",
    "open",
]

_HOMES = {
    "Admin": "client.admin",
    "Cluster": "broker.cluster",
    "Consumer": "client.consumer",
    "Producer": "client.producer",
    "TopicPartition": "common",
    "open": "broker.cluster",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_HOMES.get(name, 'errors')}"
    value: object = getattr(__import__(module, fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
