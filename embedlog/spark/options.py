"""The options of a read: options of Spark's Kafka connector, in its words, and embedlog's own.

The case of names does not matter. embedlog refuses the options that the connector refuses, and
warns of options that the connector would silently ignore: a misspelled `startingOffset` would read
everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args

from embedlog.runtime.os_files import absolute
from embedlog.spark.errors import IllegalArgument
from embedlog.spark.offsets import (
    EARLIEST,
    LATEST,
    OFFSET_MAX,
    PARTITION_MAX,
    ByTopic,
    check_timestamp,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
from embedlog.user_warnings import warn_user


@dataclass(frozen=True, slots=True)
class Assign:
    """`assign`: exactly these partitions."""

    partitions: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`subscribe`: all partitions of these topics; each topic is named once."""

    topics: list[str]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """`subscribePattern`: all topics in whose names the pattern is found, except internal ones."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Word:
    """`earliest` or `latest`, for every partition."""

    word: Literal["earliest", "latest"]


@dataclass(frozen=True, slots=True)
class Offsets:
    """An offset for each partition; -2 is the earliest, -1 the latest."""

    partitions: dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Timestamps:
    """For each partition, the first record at or after its timestamp, in ms since 1970."""

    partitions: dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Timestamp:
    """For every partition, the first record at or after one timestamp, in ms since 1970."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The offsets that a consumer group has committed."""

    group: str


Subscription = Assign | Subscribe | SubscribePattern
Bound = Word | Offsets | Timestamps | Timestamp | Committed
Strategy = Literal["error", "latest"]
Choice = TypeVar("Choice", bound=str)
TableName = Literal["records", "batches", "segments", "partitions", "groups", "findings"]

POLL_TIMEOUT_MS = 120_000
MAX_TRIGGER_DELAY_MS = 15 * 60_000
MAX_PARTITION_BYTES = 128 << 20
MAX_BATCH_BYTES = 8 << 20

_KAFKA = "kafka."
_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STREAMS_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_KNOWN = (
    *_SUBSCRIPTIONS,
    *_STREAMS_ONLY,
    *("path", "startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp"),
    *("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"),
    *("startingOffsetsByTimestampStrategy", "includeHeaders", "minPartitions"),
    *("maxRecordsPerPartition", "failOnDataLoss", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "commitOffsets", "table"),
    *("maxPartitionBytes", "maxBatchBytes", "verify"),
    # Known but unused options of writes: one dict of options may serve reads and writes.
    *("topic", "txnAppId", "txnVersion", "commitTimeoutMs", "checkpointLocation", "queryName"),
)
_KNOWN_LOWER = {name.lower(): name for name in _KNOWN}
_REFUSED = {
    "auto.offset.reset": "Kafka option 'auto.offset.reset' is not supported.\n"
    "Instead set the source option 'startingoffsets' to 'earliest' or 'latest'\n"
    "to specify where to start. Structured Streaming manages which offsets are consumed\n"
    "internally, rather than relying on the kafkaConsumer to do it. This will ensure that no\n"
    "data is missed when new topics/partitions are dynamically subscribed. Note that\n"
    "'startingoffsets' only applies when a new Streaming query is started, and\n"
    "that resuming will always pick up from where the query left off. See the docs for more\n"
    "details.",
    "key.deserializer": "Kafka option 'key.deserializer' is not supported as keys are deserialized "
    "as byte arrays with ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize "
    "the keys.",
    "value.deserializer": "Kafka option 'value.deserializer' is not supported as values are "
    "deserialized as byte arrays with ByteArrayDeserializer. Use DataFrame operations to "
    "explicitly deserialize the values.",
    "enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
_ISOLATION_LEVELS = ("read_committed", "read_uncommitted")
_NOT_THE_CONSUMERS = frozenset(
    ("bootstrap.servers", "group.id", "isolation.level", "key.serializer", "value.serializer")
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_MEASURE = re.compile(r"([0-9]{1,18})\s*([a-z]*)")
_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES = {"": 1, "b": 1} | {
    name: 1 << shift
    for shift, names in ((10, ("k", "kb")), (20, ("m", "mb")), (30, ("g", "gb")))
    for name in names
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one read. Can be pickled."""

    path: str | None
    """The data directory. It wins over `bootstrap_servers` if both are given."""
    bootstrap_servers: str | None
    subscription: Subscription | None
    """None for a `table` of all topics."""
    starting: Bound
    ending: Bound | None
    """None for a stream."""
    timestamp_strategy: Strategy
    """What to do if all records of a partition are older than the starting timestamp."""
    include_headers: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    fail_on_data_loss: bool
    read_committed: bool
    group_id: str | None
    group_id_prefix: str
    """Empty if not given."""
    commit_offsets: bool
    table: TableName
    max_partition_bytes: int
    max_batch_bytes: int
    verify_crc: bool
    poll_timeout_ms: int
    client_settings: dict[str, str] = field(repr=False)
    """Settings of Kafka's consumer by name, except those with a field in this class."""

    @classmethod
    def parse(
        cls, options: Mapping[str, str], *, streaming: bool, check: bool = True
    ) -> SourceOptions:
        """Parse the options of a batch read or a stream.

        `check=False` is for callers that do not know yet whether it is a batch read or a stream: it
        accepts options that only one of them refuses, and warns of nothing.

        Raises:
            IllegalArgument: an option is missing, invalid, or contradicts another.
        """
        given = _Given(options)
        if check and streaming:
            _refuse_endings(given)
        starting = _bound(given, "starting", Word("latest" if streaming else "earliest"))
        ending = None if streaming else _bound(given, "ending", Word("latest"))
        if check and ending is not None:
            _check_bounds(starting, ending)
        table: TableName = given.choice("table", "records", get_args(TableName))
        subscription = _subscription(given, is_required=table == "records")
        _check_kafka(given.kafka)
        made = cls(
            path=absolute(given.raw("path")) if given.raw("path") else None,
            bootstrap_servers=given.kafka.get("bootstrap.servers") or None,
            subscription=subscription,
            starting=starting,
            ending=ending,
            timestamp_strategy=given.choice(
                "startingOffsetsByTimestampStrategy", "error", get_args(Strategy)
            ),
            include_headers=given.boolean("includeHeaders", False),
            min_partitions=given.positive("minPartitions", PARTITION_MAX),
            max_records_per_partition=given.positive("maxRecordsPerPartition"),
            max_offsets_per_trigger=given.positive("maxOffsetsPerTrigger"),
            min_offsets_per_trigger=given.positive("minOffsetsPerTrigger"),
            max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", MAX_TRIGGER_DELAY_MS),
            fail_on_data_loss=given.boolean("failOnDataLoss", True),
            read_committed=given.kafka.get("isolation.level") == "read_committed",
            group_id=given.kafka.get("group.id") or None,
            group_id_prefix=given.text("groupIdPrefix") or "",
            commit_offsets=given.boolean("commitOffsets", False),
            table=table,
            max_partition_bytes=given.size("maxPartitionBytes", MAX_PARTITION_BYTES),
            max_batch_bytes=given.size("maxBatchBytes", MAX_BATCH_BYTES),
            verify_crc=given.choice("verify", "crc", ("crc", "none")) == "crc",
            poll_timeout_ms=given.positive("kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
            # Like the connector, ignore settings of a producer.
            client_settings={k: v for k, v in given.kafka.items() if k not in _NOT_THE_CONSUMERS},
        )
        _check_together(made)
        if check:
            _warn(given, options, streaming=streaming)
        return made


class _Given:
    """The options as given, found by name in any case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._texts = {name.lower(): str(text) for name, text in options.items()}
        self.kafka = {
            name.removeprefix(_KAFKA): text
            for name, text in self._texts.items()
            if name.startswith(_KAFKA)
        }

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def unknown(self) -> list[str]:
        """Return the names that no option has, in lower case."""
        return [
            name for name in self._texts if name not in _KNOWN_LOWER and not name.startswith(_KAFKA)
        ]

    def raw(self, name: str) -> str:
        """Return a value with its surrounding spaces; "" if the option is missing."""
        return self._texts.get(name.lower(), "")

    def text(self, name: str) -> str | None:
        text = self._texts.get(name.lower())
        return None if text is None else text.strip()

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise IllegalArgument(f"{name}: expected true or false, got {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, default: Choice, allowed: tuple[Choice, ...]) -> Choice:
        text = self.text(name)
        if text is None:
            return default
        for each in allowed:
            if text.lower() == each:
                return each
        raise IllegalArgument(f"{name}: expected one of {', '.join(allowed)}, got {text!r}")

    def positive(self, name: str, most: int = OFFSET_MAX) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        number = _integer(text)
        if number is None or number > most:
            raise IllegalArgument(f"{name}: expected a whole number up to {most}, got {text!r}")
        if number <= 0:
            raise IllegalArgument(f"{name} must be positive")
        return number

    def duration_ms(self, name: str, default: int) -> int:
        return self._measure(name, default, _MS, "a time such as 500ms, 30s or 15m")

    def size(self, name: str, default: int) -> int:
        found = self._measure(name, default, _BYTES, "a size such as 1048576, 512k or 128m")
        if found == 0:
            raise IllegalArgument(f"{name} must be positive")
        return found

    def _measure(self, name: str, default: int, units: Mapping[str, int], expected: str) -> int:
        text = self.text(name)
        if text is None:
            return default
        found = _MEASURE.fullmatch(text.lower())
        if found is None or found[2] not in units:
            raise IllegalArgument(f"{name}: expected {expected}, got {text!r}")
        return int(found[1]) * units[found[2]]


def _integer(text: str) -> int | None:
    # Unlike int(), accept no underscores, no digits of other scripts and no endless numbers.
    return int(text) if _INTEGER.fullmatch(text) else None


def _bound(given: _Given, which: Literal["starting", "ending"], default: Bound) -> Bound:
    """Return the first option given, in the connector's order: timestamp, timestamps, offsets."""
    if f"{which}Timestamp" in given:
        stamp = given.raw(f"{which}Timestamp").strip()
        timestamp = _integer(stamp)
        if timestamp is None or timestamp > OFFSET_MAX:
            raise IllegalArgument(f"Expected a single long value, got {stamp}")
        check_timestamp(timestamp)
        return Timestamp(timestamp)
    stamps = given.text(f"{which}OffsetsByTimestamp")
    if stamps is not None:
        return Timestamps(parse_timestamps(stamps))
    text = given.text(f"{which}Offsets")
    if text is None:
        return default
    match text.lower():
        case "earliest" | "latest" as word:
            return Word(word)
        case "committed" if which == "starting":
            group = given.kafka.get("group.id")
            if not group:
                raise IllegalArgument("startingOffsets=committed needs the option kafka.group.id")
            return Committed(group)
    return Offsets(parse_offsets(text))


def _refuse_endings(given: _Given) -> None:
    if "endingOffsets" in given:
        raise IllegalArgument("ending offset not valid in streaming queries")
    if "endingOffsetsByTimestamp" in given or "endingTimestamp" in given:
        raise IllegalArgument("ending timestamp not valid in streaming queries")


def _check_bounds(starting: Bound, ending: Bound) -> None:
    if starting == Word("latest"):
        raise IllegalArgument("starting offset can't be latest for batch queries on Kafka")
    if isinstance(starting, Offsets):
        for key in _where(starting.partitions, LATEST):
            raise IllegalArgument(
                f"startingOffsets for {key} can't be latest for batch queries on Kafka"
            )
    if ending == Word("earliest"):
        raise IllegalArgument("ending offset can't be earliest for batch queries on Kafka")
    if isinstance(ending, Offsets):
        for key in _where(ending.partitions, EARLIEST):
            raise IllegalArgument(
                f"ending offset for {key} can't be earliest for batch queries on Kafka"
            )
    if isinstance(starting, Offsets) and isinstance(ending, Offsets):
        _check_order(starting.partitions, ending.partitions, "offset")
    if isinstance(starting, Timestamps) and isinstance(ending, Timestamps):
        _check_order(starting.partitions, ending.partitions, "timestamp")


def _where(partitions: ByTopic, offset: int) -> list[str]:
    return [
        f"{topic}-{partition}"
        for topic, numbers in partitions.items()
        for partition, found in numbers.items()
        if found == offset
    ]


def _check_order(starts: ByTopic, ends: ByTopic, what: str) -> None:
    first, last = _names(starts), _names(ends)
    if set(first) != set(last):
        raise IllegalArgument(
            "The specified start offset and end offset should have the same topic-partitions.\n"
            f"Topic-partitions for start offset: {', '.join(first)}, "
            f"topic-partitions for end offset: {', '.join(last)}."
        )
    for topic, numbers in starts.items():
        for partition, start in numbers.items():
            end = ends[topic][partition]
            if start > end >= 0:
                raise IllegalArgument(
                    f"The specified start {what} {start} is greater than the end {what} {end} for "
                    f"topic {topic} partition {partition}."
                )


def _names(partitions: ByTopic) -> list[str]:
    return [
        f"{topic}-{partition}"
        for topic, numbers in sorted(partitions.items())
        for partition in sorted(numbers)
    ]


def _subscription(given: _Given, *, is_required: bool) -> Subscription | None:
    found = [name for name in _SUBSCRIPTIONS if name in given]
    names = ", ".join(_SUBSCRIPTIONS).lower()
    if not found and not is_required:
        return None
    if not found:
        raise IllegalArgument(
            f"One of the following options must be specified for Kafka source: {names}. "
            "See the docs for more details."
        )
    if len(found) > 1:
        raise IllegalArgument(
            f"Only one of the following options can be specified for Kafka source: {names}. "
            "See the docs for more details."
        )
    (name,) = found
    value, text = given.raw(name), given.raw(name).strip()
    if name == "assign":
        if not text.startswith("{"):
            raise IllegalArgument(
                f"No topicpartitions to assign as specified value for option 'assign' is '{value}'"
            )
        return Assign(parse_partitions(text))
    if name == "subscribe":
        topics = [each.strip() for each in text.split(",") if each.strip()]
        if not topics:
            raise IllegalArgument(
                f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'"
            )
        return Subscribe(list(dict.fromkeys(topics)))
    if not text:
        raise IllegalArgument(
            "Pattern to subscribe is empty as specified value for option 'subscribePattern' is "
            f"'{value}'"
        )
    return SubscribePattern(_checked_pattern(text))


def _checked_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise IllegalArgument(f"subscribePattern {text!r} is no pattern: {error}") from error
    return text


def _check_kafka(settings: Mapping[str, str]) -> None:
    for name, message in _REFUSED.items():
        if name in settings:
            raise IllegalArgument(message)
    level = settings.get("isolation.level")
    if level is not None and level not in _ISOLATION_LEVELS:
        raise IllegalArgument(
            f"Invalid value {level} for configuration isolation.level: String must be one of: "
            f"{', '.join(_ISOLATION_LEVELS)}"
        )


def _check_together(options: SourceOptions) -> None:
    if options.path is None and options.bootstrap_servers is None:
        raise IllegalArgument(
            "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer, "
            "or the option 'path' for a log directory"
        )
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise IllegalArgument(
            f"The value of minOffsetPerTrigger({least}) is higher than the "
            f"maxOffsetsPerTrigger({most})."
        )
    if options.commit_offsets and options.group_id is None:
        raise IllegalArgument("commitOffsets needs the option kafka.group.id")


def warn_of_unknown(options: Mapping[str, str]) -> None:
    """Warn of each option that neither reads nor writes know, and suggest the nearest name."""
    for name in _Given(options).unknown():
        near = get_close_matches(name, _KNOWN_LOWER, 1)
        hint = f"; did you mean {_KNOWN_LOWER[near[0]]}?" if near else ""
        warn_user(f"the option {name} is not known, and ignored{hint}")


def _warn(given: _Given, options: Mapping[str, str], *, streaming: bool) -> None:
    warn_of_unknown(options)
    if not streaming:
        for name in _STREAMS_ONLY:
            if name in given:
                warn_user(f"{name} option ignored in batch queries")
