"""`embedlog tail`: show the last records of a topic, and follow new ones."""

from __future__ import annotations

import json

from embedlog.cli.text import fields_of, printable, text_of
from embedlog.errors import ConfigError, OffsetOutOfRange
from embedlog.reader.reader import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    LogDirectoryReader,
    PartitionReader,
    open_reader,
)
from embedlog.runtime import real_runtime
from embedlog.runtime.pending import Pending
from wire.records.record import Record

_POLL_MS = 50


def run(
    path: str,
    topic: str,
    *,
    partition: int | None,
    count: int,
    from_beginning: bool,
    follow: bool,
    committed: bool,
    as_json: bool,
) -> int:
    """Print the records, and with `follow` wait for more; return the exit status."""
    isolation_level = READ_COMMITTED if committed else READ_UNCOMMITTED
    with open_reader(path) as reader:
        tails = []
        for part in _partitions(reader, topic, partition):
            start = part.log_start_offset
            if not from_beginning:
                start = max(start, part.high_watermark - count)
            tails.append(_Tail(part, start, isolation_level, as_json))
        scheduler = real_runtime().scheduler
        try:
            for tail in tails:
                tail.show()
            while follow:
                scheduler.wait(Pending(), _POLL_MS)
                for tail in tails:
                    tail.refresh()
                    tail.show()
        except KeyboardInterrupt:
            return 130
    return 0


def _partitions(
    reader: LogDirectoryReader, topic: str, partition: int | None
) -> list[PartitionReader]:
    numbers = reader.partitions(topic) if partition is None else [partition]
    if not numbers:
        raise ConfigError(f"{reader.path}: no topic {topic!r}")
    return [reader.partition(topic, number) for number in numbers]


class _Tail:
    """One partition, and the next offset to show."""

    def __init__(
        self, part: PartitionReader, offset: int, isolation_level: str, as_json: bool
    ) -> None:
        self._part = part
        self._offset = offset
        self._isolation_level = isolation_level
        self._as_json = as_json

    def refresh(self) -> None:
        """Read the newest state; skip records that retention deleted."""
        self._part.refresh()
        self._offset = max(self._offset, self._part.log_start_offset)

    def show(self) -> None:
        lines = []
        try:
            for record in self._part.records(self._offset, isolation_level=self._isolation_level):
                lines.append(self._line(record))
                self._offset = record.offset + 1
        except OffsetOutOfRange:
            self.refresh()
        finally:
            if lines:
                print("\n".join(lines), flush=True)

    def _line(self, record: Record) -> str:
        if self._as_json:
            names = {"topic": self._part.topic, "partition": self._part.partition}
            return json.dumps({**names, **fields_of(record)})
        key = "" if record.key is None else f" {text_of(record.key)}:"
        where = f"{self._part.topic}-{self._part.partition}"
        line = f"{where} {record.offset} {record.timestamp}{key} {text_of(record.value)}"
        return printable(line)
