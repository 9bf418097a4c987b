"""What goes into the admin client and comes out of it."""

from __future__ import annotations

from embedlog.common import Generic, uuid_to_text
from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from embedlog.client.metadata import Node
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError

    K = TypeVar("K")
    V = TypeVar("V")
else:
    K = V = None


class ItemResults(Generic[K, V]):
    """The outcome of a call about many items: for each a value or an error.

    `results[item]` is the value, or raises the item's error. `check()` raises the first error of
    all, so that a caller who wants all or nothing says it in one word.
    """

    __slots__ = ("errors", "values")

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        """What succeeded."""
        self.errors: dict[K, KafkaError] = {}
        """What did not, and why."""

    def __getitem__(self, item: K) -> V:
        """The item's value. Raises its error; KeyError for what was not asked about."""
        error = self.errors.get(item)
        if error is not None:
            raise error
        return self.values[item]

    def put(self, item: K, value: V, error_code: int, error_message: str | None = None) -> None:
        """Take what a broker answered about one item."""
        if error_code:
            self.errors[item] = error_for(error_code, error_message)
        else:
            self.values[item] = value

    def check(self) -> dict[K, V]:
        """All values; raises the first error there is."""
        for error in self.errors.values():
            raise error
        return self.values

    def __iter__(self) -> Iterator[K]:
        yield from self.values
        yield from self.errors

    def __len__(self) -> int:
        return len(self.values) + len(self.errors)

    def __repr__(self) -> str:
        return f"<ItemResults {self.values!r}, errors {self.errors!r}>"


class Value:
    """Equality and repr from the slots."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.__slots__]))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"


class NewTopic(Value):
    """A topic to make. -1 leaves a count to the broker; or name the brokers of each partition."""

    __slots__ = ("assignments", "configs", "name", "partition_count", "replication_factor")

    def __init__(
        self,
        name: str,
        partition_count: int = -1,
        replication_factor: int = -1,
        *,
        configs: Mapping[str, Any] | None = None,
        assignments: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        self.name = name
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.configs = dict(configs or {})
        self.assignments = dict(assignments or {})


class CreatedTopic(Value):
    """A topic that was made (or would have been): its id and what the broker filled in."""

    __slots__ = ("configs", "name", "partition_count", "replication_factor", "topic_id")

    def __init__(
        self,
        name: str,
        topic_id: bytes,
        partition_count: int,
        replication_factor: int,
        configs: dict[str, str | None],
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.configs = configs

    @property
    def topic_id_text(self) -> str:
        """The id as Kafka's tools print it."""
        return uuid_to_text(self.topic_id)


class ResourceType:
    """Kinds of things that have configuration."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(Value):
    """Something with configuration: `ConfigResource(ResourceType.TOPIC, "events")`."""

    __slots__ = ("name", "resource_type")

    def __init__(self, resource_type: int, name: str) -> None:
        self.resource_type = resource_type
        self.name = name


class ConfigSource:
    """Where a value was set."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigEntry(Value):
    """One setting. `value` is None when it is unset, or a secret (`is_sensitive`).

    `synonyms` are (name, value, source) of everything that could set it, what counts first.
    """

    __slots__ = (
        "config_type",
        "documentation",
        "is_read_only",
        "is_sensitive",
        "name",
        "source",
        "synonyms",
        "value",
    )

    def __init__(
        self,
        name: str,
        value: str | None,
        *,
        source: int,
        is_read_only: bool,
        is_sensitive: bool,
        synonyms: tuple[tuple[str, str | None, int], ...] = (),
        config_type: int = 0,
        documentation: str | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source
        self.is_read_only = is_read_only
        self.is_sensitive = is_sensitive
        self.synonyms = synonyms
        self.config_type = config_type
        self.documentation = documentation

    @property
    def is_default(self) -> bool:
        """Has nobody set it?"""
        return self.source == ConfigSource.DEFAULT


class AlterOperation:
    """What to do to one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ClusterDescription(Value):
    """The cluster: its id, its controller's node id (-1: none), its brokers by id."""

    __slots__ = ("cluster_id", "controller_id", "nodes")

    def __init__(self, cluster_id: str, controller_id: int, nodes: dict[int, Node]) -> None:
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.nodes = nodes


class ReplicaInLogDirectory(Value):
    """One partition's bytes in a log directory, and how far it is behind."""

    __slots__ = ("is_future", "offset_lag", "size")

    def __init__(self, size: int, offset_lag: int, is_future: bool) -> None:
        self.size = size
        self.offset_lag = offset_lag
        self.is_future = is_future


class LogDirectory(Value):
    """A broker's data directory. Sizes are -1 where the broker does not say."""

    __slots__ = ("error", "path", "replicas", "total_size", "usable_size")

    def __init__(
        self,
        path: str,
        error: KafkaError | None,
        replicas: dict[TopicPartition, ReplicaInLogDirectory],
        total_size: int,
        usable_size: int,
    ) -> None:
        self.path = path
        self.error = error
        self.replicas = replicas
        self.total_size = total_size
        self.usable_size = usable_size


class ProducerState(Value):
    """A producer that a partition remembers. -1 stands for what is not known or not there.

    `current_transaction_start_offset` is where its open transaction began in this partition.
    """

    __slots__ = (
        "coordinator_epoch",
        "current_transaction_start_offset",
        "last_sequence",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        last_sequence: int,
        last_timestamp_ms: int,
        coordinator_epoch: int,
        current_transaction_start_offset: int,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp_ms = last_timestamp_ms
        self.coordinator_epoch = coordinator_epoch
        self.current_transaction_start_offset = current_transaction_start_offset


class OffsetSpec:
    """What `list_offsets` looks for; any other number is a timestamp in ms."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
