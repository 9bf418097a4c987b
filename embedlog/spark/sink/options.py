"""The options of a write: Spark's Kafka connector's, and a few for exactly-once commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql.types import DataType, StructType

from embedlog.runtime.os_files import absolute
from embedlog.spark.options import warn_of_unknown

BATCH_SIZE = 512 << 10
"""Size in bytes of a staged batch if `kafka.batch.size` is not set; max.message.bytes is 1 MiB."""
COMMIT_TIMEOUT_MS = 60_000
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_KAFKA = "kafka."
_REFUSED = {
    "key.serializer": "keys are serialized with ByteArraySerializer.",
    "value.serializer": "values are serialized with ByteArraySerializer.",
    "partitioner.class": "keys are partitioned as Kafka's producer does by default. Use a "
    "'partition' column for anything else.",
}
_STRING, _BINARY = "string", "binary"
_HEADERS = "array<struct<key:string,value:binary>>"
COLUMNS = {
    "topic": (_STRING,),
    "key": (_STRING, _BINARY),
    "value": (_STRING, _BINARY),
    "headers": (_HEADERS,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of one write. `path` is "" for a write over the wire to `servers`."""

    path: str
    servers: str
    topic: str | None
    application: str = ""
    version: int = 0
    codec: int = 0
    level: int | None = None
    batch_size: int = BATCH_SIZE
    commit_timeout_ms: int = COMMIT_TIMEOUT_MS
    producer: dict[str, str] = field(default_factory=dict, repr=False)
    """Settings of Kafka's producer, without "kafka."."""

    @property
    def is_transactional(self) -> bool:
        """Whether all rows are written over the wire in one transaction."""
        return not self.path and bool(self.producer.get("transactional.id"))


def parse(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of a writer, with names in any case; warn of unknown options.

    Raises:
        IllegalArgumentException: an option is missing, invalid or contradicts another. The text is
            the connector's for options that it has.
    """
    warn_of_unknown(options)
    given = {name.lower(): text for name, text in options.items()}
    path, producer = given.get("path", ""), _producer_settings(given)
    servers = producer.get("bootstrap.servers", "")
    if not path and not servers:
        raise IllegalArgumentException(
            "Kafka option bootstrap.servers is not set. Please make sure it is set and retry."
        )
    application, version = given.get("txnappid", ""), given.get("txnversion", "")
    if bool(application) != bool(version):
        raise IllegalArgumentException(
            f"txnAppId={application!r} and txnVersion={version!r} belong together: both or none"
        )
    if path and producer.get("transactional.id"):
        raise IllegalArgumentException(
            "Kafka option 'transactional.id' is not supported as a write to a path is committed as "
            "a whole already."
        )
    codec = producer.get("compression.type", "none").lower()
    if codec not in CODECS:
        raise IllegalArgumentException(
            f"kafka.compression.type={codec!r}: expected one of {', '.join(CODECS)}"
        )
    level = producer.get(f"compression.{codec}.level")
    return SinkOptions(
        path=absolute(path) if path else "",
        servers=servers,
        topic=given.get("topic"),
        application=application,
        version=_number("txnVersion", version, 0) if version else 0,
        codec=CODECS[codec],
        level=None
        if level is None
        else _number(f"kafka.compression.{codec}.level", level, -(1 << 20)),
        batch_size=_number("kafka.batch.size", producer.get("batch.size", BATCH_SIZE), 0),
        commit_timeout_ms=_number(
            "commitTimeoutMs", given.get("committimeoutms", COMMIT_TIMEOUT_MS), 1
        ),
        producer=producer,
    )


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Refuse columns that are missing or of another type.

    Raises:
        AnalysisException: in the connector's words.
    """
    types = {column.name: column.dataType for column in schema.fields}
    if options.topic is None and "topic" not in types:
        raise AnalysisException(
            "topic option required when no 'topic' attribute is present. Use the topic option for "
            "setting a topic."
        )
    if "value" not in types:
        raise AnalysisException("Required attribute 'value' not found")
    for name, allowed in COLUMNS.items():
        found = types.get(name)
        if found is not None and _plain(found) not in allowed:
            raise AnalysisException(
                f"{name} attribute unsupported type {found.simpleString()}. "
                f"{name} must be a(n) {' or '.join(allowed)}"
            )


def _plain(data_type: DataType) -> str:
    text = data_type.simpleString()
    return _STRING if text.startswith(("string ", "varchar", "char(")) else text


def _producer_settings(given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, text in given.items():
        if not name.startswith(_KAFKA):
            continue
        name = name.removeprefix(_KAFKA)
        if name in _REFUSED:
            raise IllegalArgumentException(
                f"Kafka option '{name}' is not supported as {_REFUSED[name]}"
            )
        found[name] = text
    return found


def _number(name: str, text: str | int, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise IllegalArgumentException(f"{name}={text!r}: expected a whole number") from None
    if number < least:
        raise IllegalArgumentException(f"{name}={number}: expected {least} or more")
    return number
