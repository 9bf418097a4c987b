"""The topics of a job, in a data directory or at brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import embedlog
from embedlog import errors
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import ConfigError
from embedlog.runtime.os_files import absolute
from embedlog.spark.access.directory import INTERNAL_TOPICS, stored_topic_id
from embedlog.spark.access.log_access import open_access
from embedlog.spark.offsets import Positions, to_json
from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.columns import records_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from embedlog.spark.reading.batch_reader import BatchReader


@dataclass(frozen=True, slots=True)
class JobTopics:
    """Topics of a data directory at `path`, or of the brokers at `bootstrap_servers`.

    `options` belong to `format("embedlog")`, such as "kafka.isolation.level".
    """

    names: tuple[str, ...]
    path: str | None = None
    bootstrap_servers: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError without topics, or unless one of path and servers is given."""
        if not self.names:
            raise ConfigError("topics: at least one is needed")
        if (self.path is None) == (self.bootstrap_servers is None):
            raise ConfigError("one of path and bootstrap_servers is needed")
        if self.path is not None:
            object.__setattr__(self, "path", absolute(self.path))

    def bounds(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return (first offset, end offset) of each partition for a reader, all of one moment.

        Raises:
            UnknownTopicOrPartition: a topic does not exist.
        """
        with closing(open_access(SourceOptions.parse(self._options(), streaming=False))) as access:
            wanted = []
            for name in self.names:
                numbers = access.partitions(name)
                if not numbers:
                    raise errors.UnknownTopicOrPartition(f"no topic {name!r} in {self.place}")
                wanted += [TopicPartition(name, number) for number in numbers]
            return access.bounds(wanted)

    def ids(self) -> dict[str, str]:
        """Return the id of each topic. A topic that was deleted and made again has another id.

        Raises:
            UnknownTopicOrPartition: a topic does not exist.
        """
        ids, found = {}, {}
        try:
            if self.path is None:
                with embedlog.Admin(self.bootstrap_servers) as admin:
                    found = admin.list_topics()
            for name in self.names:
                if self.path is None:
                    topic_id = found[name].topic_id
                else:
                    topic_id = stored_topic_id(self.path, TopicPartition(name, 0))
                ids[name] = uuid_to_text(topic_id)
        except (KeyError, FileNotFoundError):
            raise errors.UnknownTopicOrPartition(f"no topic {name!r} in {self.place}") from None
        return ids

    def read(self, spark: SparkSession, starts: Positions, ends: Positions) -> DataFrame:
        options = {**self._options(), **_ranges(starts, ends), "includeHeaders": "true"}
        return spark.read.format("embedlog").options(**options).load()

    def reader(self, starts: Positions, ends: Positions) -> BatchReader:
        """Return a reader of these offsets that makes no Spark rows. Requires: a session exists."""
        from pyspark.sql.types import StructType

        from embedlog.spark.reading.batch_reader import BatchReader

        options = {**self._options(), **_ranges(starts, ends)}
        schema = StructType.fromDDL(records_ddl(headers=True))
        assert isinstance(schema, StructType), schema
        return BatchReader(SourceOptions.parse(options, streaming=False), schema)

    @property
    def isolation(self) -> str:
        is_committed = SourceOptions.parse(self._options(), streaming=False).read_committed
        return "read_committed" if is_committed else "read_uncommitted"

    @property
    def place(self) -> str:
        """The directory or address, for messages."""
        return self.path or self.bootstrap_servers or ""

    def _options(self) -> dict[str, str]:
        options = {**self.options, "subscribe": ",".join(self.names)}
        if self.path is not None:
            return {**options, "path": self.path}
        assert self.bootstrap_servers is not None, "checked when it was made"
        return {**options, "kafka.bootstrap.servers": self.bootstrap_servers}


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of records. Every given condition must hold; `where` is SQL over the columns."""

    topics: tuple[str, ...] = ()
    where: str = "true"


def partitions_of(path: str, topics: Sequence[str], *, internal: bool) -> list[TopicPartition]:
    """Return the partitions of `topics` in a data directory.

    Without `topics`, return those of all topics, but of internal ones only with `internal`.

    Raises:
        UnknownTopicOrPartition: a topic does not exist.
    """
    found = []
    with embedlog.open_reader(path) as reader:
        all_topics = [name for name in reader.topics() if internal or name not in INTERNAL_TOPICS]
        for topic in topics or all_topics:
            numbers = reader.partitions(topic)
            if not numbers:
                raise errors.UnknownTopicOrPartition(f"{path} has no topic {topic!r}")
            found += [TopicPartition(topic, number) for number in numbers]
    return found


def _ranges(starts: Positions, ends: Positions) -> dict[str, str]:
    return {
        "startingOffsets": json.dumps(to_json(starts)),
        "endingOffsets": json.dumps(to_json(ends)),
    }
