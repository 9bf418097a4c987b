"""Arguments and results of the admin client: `ItemResults`, settings, directories, offsets."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.common import Generic, Value
from embedlog.errors import KafkaError, again, error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeVar

    from embedlog.client.cluster_nodes import Node
    from embedlog.common import TopicPartition
    from embedlog.user_warnings import Line

    K = TypeVar("K")
    V = TypeVar("V")
    T = TypeVar("T")
else:
    K = V = None


_SHOWN_MAX = 3


class AdminValue(Value):
    """A `Value` that the admin client takes or returns. Its repr lists the fields by name."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self._names))
        return f"{type(self).__name__}({shown})"


class ItemResults(Generic[K, V]):
    """The results of a call about many items: a value or an error for each.

    `results[item]` returns the value or raises the item's error. `check()` returns all values or
    raises the first error. If the results are dropped before the errors were looked at, there is a
    RuntimeWarning. `check`, `errors`, `items`, `get`, `results[item]`, iteration and `len` count as
    looking; `values` does not.

    >>> with embedlog.open() as cluster, embedlog.Admin(cluster) as admin:
    ...     made = admin.create_topics({"events": 1, "no blanks": 1})
    ...     list(made), [type(error).__name__ for error in made.errors.values()]
    (['events', 'no blanks'], ['InvalidTopic'])
    """

    __slots__ = ("_call", "_is_unseen", "_line", "failures", "values")

    def __init__(self) -> None:
        self.values: dict[K, V] = {}
        """The values of the items that succeeded."""
        self.failures: dict[K, KafkaError] = {}
        """Like `errors`, for the client's own use: reading it does not count as looking."""
        self._call = ""
        self._is_unseen = False
        self._line: Line | None = None

    @property
    def errors(self) -> dict[K, KafkaError]:
        """The errors of the items that failed."""
        self._is_unseen = False
        return self.failures

    def __getitem__(self, item: K) -> V:
        """Return the item's value or raise its error; KeyError if the call had no such item."""
        error = self.errors.get(item)
        if error is not None:
            raise again(error)
        try:
            return self.values[item]
        except KeyError:
            there = ", ".join(map(repr, self)) or "nothing"
            call = self._call or "the call"
            raise KeyError(f"{call} was not asked about {item!r}; there is {there}") from None

    def get(self, item: K, default: Any = None) -> V | Any:
        """Return the item's value; `default` if it failed or the call had no such item."""
        self._is_unseen = False
        return self.values.get(item, default)

    def items(self) -> list[tuple[K, V | KafkaError]]:
        """Return each item with its value or its error."""
        return [*self.values.items(), *self.errors.items()]

    def keys(self) -> list[K]:
        """Return the items that the call was about, failed items last."""
        return [*self.values, *self.errors]

    def put(self, item: K, value: V, error_code: int, error_message: str | None = None) -> None:
        """Store a broker's answer about one item: the value, or the error of `error_code`."""
        if error_code:
            self.failures[item] = error_for(error_code, error_message)
        else:
            self.values[item] = value

    def check(self) -> dict[K, V]:
        """Return all values, or raise the first error."""
        for error in self.errors.values():
            raise again(error)
        return self.values

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __contains__(self, item: object) -> bool:
        return item in self.values or item in self.errors

    def __len__(self) -> int:
        return len(self.values) + len(self.errors)

    def __repr__(self) -> str:
        return f"<ItemResults {self.values!r}, errors {self.errors!r}>"

    def __del__(self) -> None:
        if getattr(self, "_is_unseen", False):
            self._warn_unseen()

    def _warn_unseen(self) -> None:
        from embedlog.user_warnings import warn_user

        failures = self.failures
        shown = [f"{item!r}: {error!r}" for item, error in list(failures.items())[:_SHOWN_MAX]]
        more = "" if len(failures) <= _SHOWN_MAX else ", ..."
        warn_user(
            f"{self._call}: {len(failures)} of {len(failures) + len(self.values)} failed, and "
            f"nobody looked: {', '.join(shown)}{more}; call check() on the result",
            RuntimeWarning,
            line=self._line,
        )


def results_of(outcomes: Mapping[K, V | KafkaError]) -> ItemResults[K, V]:
    """Return the values and errors of `outcomes` as results."""
    results: ItemResults[K, V] = ItemResults()
    for item, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            results.failures[item] = outcome
        else:
            results.values[item] = outcome
    return results


def handed_out(found: T, call: str) -> T:
    """Return a call's result for the user; if it is `ItemResults`, a copy that can warn.

    The copy warns when its last reference goes, if nobody looked at its errors. The original would
    warn late: an error of a broker in this process refers to the call's frames, and they refer to
    the original until the next garbage collection.
    """
    if not isinstance(found, ItemResults):
        return found
    results: Any = ItemResults()
    results.values = {item: handed_out(value, call) for item, value in found.values.items()}
    results.failures = found.failures
    results._call = call
    if found.failures:
        from embedlog.user_warnings import user_line

        results._line = user_line()
        results._is_unseen = True
    return results  # type: ignore[no-any-return]


class ResourceType:
    """The kinds of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(AdminValue):
    """A resource with settings: `ConfigResource(ResourceType.TOPIC, "events")`."""

    resource_type: int
    name: str

    def __init__(self, resource_type: int | str, name: str) -> None:
        """`resource_type` is a `ResourceType` or its name: "topic", "BROKER", ..."""
        if isinstance(resource_type, str):
            found = getattr(ResourceType, resource_type.upper(), None)
            if found is None:
                raise ValueError(
                    f"ConfigResource(resource_type={resource_type!r}): there is no such "
                    "ResourceType"
                )
            resource_type = found
        number = arguments.number(
            resource_type, "ConfigResource", "resource_type", "a ResourceType", lowest=0
        )
        super().__init__(number, arguments.name(name, "ConfigResource", "name"))


class ConfigSource:
    """The origin of a setting's value."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class ConfigEntry(AdminValue):
    """One setting. `value` is None if it is unset or secret (`is_sensitive`).

    `synonyms` are (name, value, source) of all values for the setting, by precedence.
    """

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...] = ()
    config_type: int = 0
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set a value, so that Kafka's default applies."""
        return self.source == ConfigSource.DEFAULT


class AlterOperation:
    """The operations of `incremental_alter_configs` on one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ClusterDescription(AdminValue):
    """The cluster's id, its controller's node id (-1: none) and its brokers by id."""

    cluster_id: str
    controller_id: int
    nodes: dict[int, Node]


class ReplicaInLogDirectory(AdminValue):
    """A replica in a log directory: its size in bytes and its lag.

    `is_future` is True for the new copy of a replica that is being moved to this directory.
    """

    size: int
    offset_lag: int
    is_future: bool


class LogDirectory(AdminValue):
    """A broker's data directory. Sizes are in bytes, -1 if the broker does not report them.

    A broker creates no partition in a cordoned directory (KIP-1066).
    """

    path: str
    error: KafkaError | None
    replicas: dict[TopicPartition, ReplicaInLogDirectory]
    total_size: int
    usable_size: int
    is_cordoned: bool = False


class ProducerState(AdminValue):
    """The state of a producer in a partition. -1 means unknown or none.

    `current_transaction_start_offset` is the start of its open transaction in this partition.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class OffsetSpec:
    """Numbers with a special meaning for `list_offsets`. Other numbers are timestamps in ms."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
