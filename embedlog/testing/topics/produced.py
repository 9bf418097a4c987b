"""`assert_produces` and `assert_nothing_produced`: records that appear during a block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from embedlog.errors import ConfigError
from embedlog.testing.topics.comparing import Comparable, counted, lines_of
from embedlog.testing.topics.gathering import Gathering
from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.record import LogRecord
from embedlog.user_warnings import warn_user

if TYPE_CHECKING:
    from embedlog.testing.topics.logs import Logs

T = TypeVar("T")

_UNBOUNDED = 2**63
_OTHERS_MAX = 10


class NewRecords(Comparable, Sequence[LogRecord]):
    """An assertion around a block, and the new records, in the order of partitions.

    Within the block it reads the log; after the block it is fixed.
    """

    _is_entered = True

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._is_over = False
        self._is_entered = False

    def __del__(self) -> None:
        if not self._is_entered:
            warn_user(
                f"{self.title}: nothing was asserted, because no `with` entered it", RuntimeWarning
            )

    @property
    def title(self) -> str:
        topics = self._gathering.topics
        return "any topic" if topics is None else ", ".join(topics)

    def _records(self) -> list[LogRecord]:
        if self._is_entered and not self._is_over:
            self._gathering.take()
        return sorted(
            self._gathering.found, key=lambda each: (each.topic, each.partition, each.offset)
        )

    def values(self) -> list[Any]:
        """Return the values, decoded if the topic has a format."""
        return [each.decoded_value for each in self._records()]

    def keys(self) -> list[Any]:
        """Return the keys, decoded if the topic has a format."""
        return [each.decoded_key for each in self._records()]

    def __len__(self) -> int:
        return len(self._records())

    def __iter__(self) -> Iterator[LogRecord]:
        return iter(self._records())

    @overload
    def __getitem__(self, place: int) -> LogRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[LogRecord]: ...
    def __getitem__(self, place: int | slice) -> LogRecord | list[LogRecord]:
        return self._records()[place]

    # The block

    def __enter__(self) -> Self:
        self._is_entered = True
        self._gathering.begin()
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        __tracebackhide__ = True
        problem = self._end() if kind is None else None
        self._is_over = True
        if problem is not None:
            raise AssertionError(problem)

    async def __aenter__(self) -> Self:
        self._is_entered = True
        await self._in_thread(self._gathering.begin)
        return self

    async def __aexit__(self, kind: object, *_exception: object) -> None:
        __tracebackhide__ = True
        problem = await self._in_thread(self._end) if kind is None else None
        self._is_over = True
        if problem is not None:
            raise AssertionError(problem)

    def _in_thread(self, call: Callable[[], T]) -> Awaitable[T]:
        """Call while the event loop goes on, as the code under test may run in it."""
        from embedlog.aio.threads import in_thread

        return in_thread(self._gathering.logs.runtime.scheduler, "assert-produces", call)

    @abstractmethod
    def _end(self) -> str | None:
        """Wait, and return the text of the failure; None if the assertion holds."""


class Produces(NewRecords):
    """`Kafka.assert_produces`."""

    def __init__(
        self,
        logs: Logs,
        topics: list[str],
        matching: rec | None,
        *,
        count: int | range | None,
        timeout: float,
        quiet_ms: int,
        isolation: str,
        missing_ok: bool,
    ) -> None:
        self._least, self._most = _bounds(count)
        self._timeout_ms = _milliseconds("timeout", timeout, 1000)
        self._quiet_ms = _milliseconds("quiet_ms", quiet_ms, 1)
        super().__init__(
            Gathering(logs, topics, matching, isolation=isolation, missing_ok=missing_ok)
        )

    def _end(self) -> str | None:
        gathering, least, most = self._gathering, self._least, self._most
        has_come = gathering.wait(lambda count: count >= least, self._timeout_ms)
        if has_come and self._quiet_ms:
            gathering.wait(lambda count: count > most, self._quiet_ms)
        found = len(gathering.found)
        if least <= found <= most:
            return None
        waited = "" if has_come else f" within {self._timeout_ms / 1000:g} s"
        what = "" if gathering.matching is None else f" that are {gathering.matching!r}"
        expected = f"{self.title}: expected {_amount(least, most)}{what}, got {found}{waited}"
        lines = [f"  {each}" for each in lines_of(self._records())]
        return "\n".join([expected, *lines, *_other_lines(gathering)])


class ProducesNothing(NewRecords):
    """`Kafka.assert_nothing_produced`."""

    def __init__(
        self,
        logs: Logs,
        topics: list[str] | None,
        matching: rec | None,
        *,
        for_ms: int | None,
        until: Callable[[], object] | None,
        isolation: str,
        missing_ok: bool,
    ) -> None:
        if until is not None and not callable(until):
            raise ConfigError(f"until={until!r}: expected a function that waits")
        default_ms = 200 if until is None else 0
        self._for_ms = _milliseconds("for_ms", default_ms if for_ms is None else for_ms, 1)
        self._until = until
        super().__init__(
            Gathering(logs, topics, matching, isolation=isolation, missing_ok=missing_ok)
        )

    def _end(self) -> str | None:
        if self._until is not None:
            self._until()
        gathering = self._gathering
        if not gathering.wait(lambda count: count > 0, self._for_ms):
            return None
        what = "" if gathering.matching is None else f" that is {gathering.matching!r}"
        found = counted(len(gathering.found))
        lines = [f"  {each}" for each in lines_of(self._records())]
        return "\n".join([f"{self.title}: expected no record{what}, got {found}", *lines])


def _other_lines(gathering: Gathering) -> list[str]:
    """Return what a failure shows beside the records that count."""
    lines = []
    if gathering.others and gathering.matching is not None:
        lines.append(f"not {gathering.matching!r}:")
        for record in gathering.others[:_OTHERS_MAX]:
            problems = gathering.matching.problems(record)
            lines += [f"  {record!r}", *(f"      {each}" for each in problems)]
        if len(gathering.others) > _OTHERS_MAX:
            lines.append(f"  ... {len(gathering.others) - _OTHERS_MAX} more")
    uncommitted = gathering.uncommitted_count()
    if uncommitted:
        lines.append(f"behind them {uncommitted} offsets are not committed (open transaction?)")
    lines += [f"there is still no topic {each!r}" for each in gathering.missing_topics()]
    return lines


def _amount(least: int, most: int) -> str:
    if least == most:
        return counted(least)
    return f"at least {counted(least)}" if most == _UNBOUNDED else f"{least} to {most} records"


def _bounds(count: int | range | None) -> tuple[int, int]:
    if count is None:
        return 1, _UNBOUNDED
    if isinstance(count, range):
        if not count or count.step != 1 or count.start < 0:
            raise ConfigError(f"count={count!r}: expected a range such as range(1, 4), for 1 to 3")
        return count.start, count.stop - 1
    if type(count) is not int or count < 1:
        raise ConfigError(
            f"count={count!r}: expected a number from 1 on, a range, or None for at least one; "
            "assert_nothing_produced is for none"
        )
    return count, count


def _milliseconds(name: str, given: float, factor: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
        raise ConfigError(f"{name}={given!r}: expected a number from 0 on")
    return round(min(given * factor, 1e12))
