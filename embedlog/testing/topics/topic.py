"""`Topic`: what a test reads from a topic and puts into it. `Kafka.topic` returns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from embedlog.errors import ConfigError, LeaderNotAvailable
from embedlog.testing.topics.comparing import Comparable, listed
from embedlog.testing.topics.formats import format_of
from embedlog.testing.topics.look import settled
from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.reading import isolation_of, read_records
from embedlog.testing.topics.record import Formats, LogRecord
from embedlog.testing.topics.seeds import Headers, seed, seed_of
from embedlog.testing.topics.times import milliseconds_of

if TYPE_CHECKING:
    from _typeshed import StrPath

    from embedlog.testing.topics.logs import Logs
    from embedlog.testing.topics.seeding import Seeder
    from embedlog.testing.topics.transactions import OpenTransaction

Since = int | datetime | Mapping[int, int]
"""An offset of each partition, a time, or the offset of each partition by number."""
_COMMITTED = "read_committed"
_TRANSACTION_TIMEOUT_S = 900.0


class Topic(Comparable):
    """A topic. Records come from the logs, sorted by partition and offset.

    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     orders = kafka.topic("orders", value="json")
    ...     written = orders.put({"id": 1}, key="k")
    ...     orders.values(), orders == [rec(key=b"k", value=json_like({"id": 1}))]
    ([{'id': 1}], True)
    """

    def __init__(self, logs: Logs, name: str, *, key: Any = None, value: Any = None) -> None:
        """Use `Kafka.topic`. A format that is given here stays the topic's in later calls."""
        logs.check(name)
        self.name = name
        self._logs = logs
        known = logs.formats.get(name, Formats())
        self.formats = Formats(
            format_of(key, logs.registry) or known.key,
            format_of(value, logs.registry) or known.value,
        )
        logs.formats[name] = self.formats

    # Reading

    @property
    def title(self) -> str:
        return self.name

    def records(
        self,
        matching: rec | None = None,
        *,
        isolation: str = _COMMITTED,
        partition: int | None = None,
        since: Since | None = None,
        decode: Any = None,
    ) -> list[LogRecord]:
        """Return the records that a consumer with this isolation would get.

        `since` is a time, an offset, or a dict of offsets by partition (see `ends`). `decode` is a
        format of the values in place of the topic's.
        """
        if matching is not None and not isinstance(matching, rec):
            raise TypeError(f"records({matching!r}): expected a rec(...)")
        level = isolation_of(isolation)
        if partition is not None:
            self._logs.check_partition(self.name, partition)
        starts = self._starts(since)
        formats = self.formats
        if decode is not None:
            formats = formats._replace(value=format_of(decode, self._logs.registry))
        look = settled(self._logs, [self.name], level, needs_leaders=True)
        found: list[LogRecord] = []
        for index in range(self._logs.partition_count(self.name)):
            if partition not in (None, index):
                continue
            key = next((each for each in look.leaders if each[2] == index), None)
            if key is None:
                self._logs.leader(self.name, index)  # raises
                raise LeaderNotAvailable(f"partition {index} of {self.name!r} had no leader")
            read = read_records(
                look.leaders[key],
                starts.get(index, 0),
                look.ends[key],
                isolation=level,
                formats=formats,
            )
            found += read if matching is None else filter(matching.matches, read)
        if isinstance(since, datetime):
            since_ms = milliseconds_of(since)
            return [each for each in found if each.timestamp >= since_ms]
        return found

    def _starts(self, since: Since | None) -> Mapping[int, int]:
        if since is None or isinstance(since, datetime):
            return {}
        if isinstance(since, Mapping):
            for index in since:
                self._logs.check_partition(self.name, index)
            return since
        if type(since) is not int:
            raise TypeError(f"since={since!r}: expected an offset, a dict of them, or a datetime")
        return dict.fromkeys(range(self._logs.partition_count(self.name)), since)

    def _records(self) -> list[LogRecord]:
        return self.records()

    def values(self, **where: Any) -> list[Any]:
        """Return the values, decoded if the topic has a format. `where` is as of `records`."""
        return [each.decoded_value for each in self.records(**where)]

    def keys(self, **where: Any) -> list[Any]:
        """Return the keys, decoded if the topic has a format. `where` is as of `records`."""
        return [each.decoded_key for each in self.records(**where)]

    def last(self, matching: rec | None = None, **where: Any) -> LogRecord:
        """Return the newest record: of one partition the last one, of several the latest in time.

        Raises:
            AssertionError: there is no record.
        """
        found = self.records(matching, **where)
        if not found:
            raise AssertionError(self._none(matching))
        lasts = {each.partition: each for each in found}
        return max(lasts.values(), key=lambda each: (each.timestamp, each.partition))

    def only(self, matching: rec | None = None, **where: Any) -> LogRecord:
        """Return the only record.

        Raises:
            AssertionError: there is none, or there are several; the message lists them.
        """
        found = self.records(matching, **where)
        if not found:
            raise AssertionError(self._none(matching))
        if len(found) > 1:
            raise AssertionError(f"expected one record in {listed(self.name, found)}")
        return found[0]

    def _none(self, matching: rec | None) -> str:
        if matching is None:
            return f"{self.name}: no records"
        return f"no record is {matching!r} in {listed(self.name, self.records())}"

    def ends(self, *, isolation: str = _COMMITTED) -> dict[int, int]:
        """Return the offset after the last record by partition, for `since`."""
        look = settled(self._logs, [self.name], isolation_of(isolation), needs_leaders=True)
        return {key[2]: end for key, end in look.ends.items()}

    def __len__(self) -> int:
        return len(self.records())

    def __iter__(self) -> Iterator[LogRecord]:
        return iter(self.records())

    # Seeding

    def put(
        self,
        value: Any,
        key: Any = None,
        *,
        timestamp: int | datetime | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        at_offset: int | None = None,
        compression: str | None = None,
    ) -> LogRecord:
        """Write a record, and return it once all in-sync replicas have it.

        `value` None is a tombstone. A key chooses the partition as in every client; records without
        a key take the partitions in turn. Any `timestamp` is written, but retention holds: a record
        older than retention.ms goes with the next run, which comes 30 s after the start and then
        every 5 minutes. `at_offset` leaves a gap before the record.

        >>> with Kafka(topics={"t": 1}) as kafka:
        ...     kafka.topic("t").put("late", "k", timestamp=0, at_offset=10)
        <t[0]@10: key=b'k', value=b'late'>
        """
        made = seed(
            value,
            key,
            self.formats,
            timestamp=timestamp,
            headers=headers,
            partition=partition,
            at_offset=at_offset,
        )
        return self._seeder().write([made], compression=compression)[0]

    def put_many(
        self, records: Iterable[Any], *, compression: str | None = None
    ) -> list[LogRecord]:
        """Write values and `rec`s, as few batches as possible; return them as `put` does.

        >>> with Kafka(topics={"t": 1}) as kafka:
        ...     kafka.topic("t").put_many([b"a", rec(key=b"k", value=None, timestamp=0)])
        [<t[0]@0: key=None, value=b'a'>, <t[0]@1: key=b'k', value=None>]
        """
        if isinstance(records, str | bytes):
            raise TypeError(f"put_many({records!r}): expected a list of values; `put` writes one")
        seeds = [seed_of(each, self.formats) for each in records]
        return self._seeder().write(seeds, compression=compression)

    def tombstone(self, key: Any, **more: Any) -> LogRecord:
        """Write a record without a value for `key`; `more` is as of `put`."""
        if key is None:
            raise TypeError("a tombstone has a key")
        return self.put(None, key, **more)

    def skip(self, count: int, *, partition: int | None = None) -> int:
        """Leave a gap of `count` offsets, as compaction does; return the next offset.

        >>> with Kafka(topics={"t": 1}) as kafka:
        ...     kafka.topic("t").skip(5), kafka.topic("t").put(b"x").offset
        (5, 5)
        """
        from embedlog.testing.topics.seeding import skip

        if partition is None:
            if self._logs.partition_count(self.name) > 1:
                raise ConfigError("skip: which partition? Give partition=...")
            partition = 0
        self._logs.check_partition(self.name, partition)
        return skip(self._logs, self.name, count, partition)

    def transaction(
        self, transactional_id: str | None = None, *, timeout: float = _TRANSACTION_TIMEOUT_S
    ) -> OpenTransaction:
        """Begin a transaction, which stays open until its `commit` or `abort`.

        As a context manager it commits at the end, unless an exception leaves. `timeout` is in
        seconds: then the broker aborts it.
        """
        from embedlog.testing.topics.transactions import OpenTransaction

        return OpenTransaction(
            self._logs,
            self.name,
            self.formats,
            transactional_id=transactional_id,
            timeout=timeout,
        )

    def put_aborted(self, records: Iterable[Any]) -> list[LogRecord]:
        """Write values and `rec`s in a transaction that is aborted."""
        transaction = self.transaction()
        written = transaction.put_many(records)
        transaction.abort()
        return written

    def fill(
        self,
        count: int,
        *,
        seed: int = 0,
        value_size: int = 100,
        key_count: int = 0,
        start: int | datetime | None = None,
        interval_ms: int = 0,
        partition: int | None = None,
        make: Callable[[int], Any] | None = None,
    ) -> int:
        """Write `count` records that the seed alone decides; return `count`.

        Values are text of `value_size` characters. With `key_count` the records share that number
        of keys. Timestamps begin at `start` (now) and grow by `interval_ms`. `make(number)` returns
        a value or a `rec` in place of them.

        >>> with Kafka(topics={"t": 1}) as kafka:
        ...     kafka.topic("t").fill(1000, seed=1), len(kafka.topic("t"))
        (1000, 1000)
        """
        from embedlog.testing.topics.filling import filling

        seeds = filling(
            count,
            seed=seed,
            value_size=value_size,
            key_count=key_count,
            start=self._logs.runtime.clock.wall_ms() if start is None else milliseconds_of(start),
            interval_ms=interval_ms,
            partition=partition,
            make=None if make is None else lambda number: seed_of(make(number), self.formats),
        )
        return len(self._seeder().write(seeds))

    def load(self, path: StrPath, *, keep_offsets: bool = False) -> list[LogRecord]:
        """Write the records of a file of JSON lines: see `dump`.

        With `keep_offsets` they get the offsets in the file, with gaps where it has some.
        """
        from embedlog.testing.topics.json_lines import read_file

        return self._seeder().write(read_file(path, keeps_offsets=keep_offsets))

    def dump(self, path: StrPath, **where: Any) -> int:
        """Write the records to a file of JSON lines; return their number. `where` is as of
        `records`.

        Each line is `{"partition": 0, "offset": 7, "timestamp": ..., "key": "k", "value": "v"}`,
        with "headers" if there are some. Bytes that are not UTF-8 are `{"base64": "..."}`.
        """
        from embedlog.testing.topics.json_lines import write_file

        return write_file(path, self.records(**where))

    def delete_records(self, before: int | Mapping[int, int]) -> dict[int, int]:
        """Delete the records below an offset (-1: all), or below an offset of each partition.

        Return the first offset of each partition.
        """
        from embedlog.testing.topics.offsets import delete_before

        return delete_before(self._logs, self.name, before)

    def _seeder(self) -> Seeder:
        from embedlog.testing.topics.seeding import Seeder

        return Seeder(self._logs, self.name, self.formats)
