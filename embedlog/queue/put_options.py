"""`PutOptions`: the checked options of a `put`."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from embedlog.client import arguments
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from embedlog.client.producer.transaction import Transaction

DELAY_MAX_S = 10 * 366 * 86_400
MANY = ("key", "priority", "headers")
"""The options of `put_many`."""
ONE = (*MANY, "delay", "at", "cron", "id", "dedupe", "window", "reply", "transaction")
"""The options of `put`."""
_OWN = "job."


def check_names(call: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError if a call has no option of a given name."""
    for name in given:
        if name not in known:
            raise TypeError(f"{call} has no option {name!r}; its options: {', '.join(known)}")


class PutOptions:
    """The checked options of one `put`."""

    __slots__ = (
        "cron",
        "dedupe",
        "delay_s",
        "due_at_ms",
        "headers",
        "id",
        "key",
        "priority",
        "transaction",
        "wants_reply",
        "window_s",
    )

    def __init__(
        self,
        *,
        key: Any = None,
        delay: Any = None,
        at: Any = None,
        cron: Any = None,
        id: Any = None,
        priority: Any = 0,
        dedupe: Any = None,
        window: Any = 300,
        reply: bool = False,
        headers: Mapping[str, Any] | None = None,
        transaction: Transaction | None = None,
        priorities: int = 1,
    ) -> None:
        """Raises TypeError or ValueError, with the argument and its value."""
        self.key = _bytes(key, "key")
        self.id = None if id is None else arguments.name(id, "put", "id")
        self.dedupe = None if dedupe is None else _text(dedupe)
        self.window_s = _seconds(window, "window")
        self.cron = None if cron is None else arguments.name(cron, "put", "cron")
        self.delay_s = 0.0 if delay is None else _seconds(delay, "delay")
        self.due_at_ms = None if at is None else _moment_ms(at)
        if sum(each is not None for each in (delay, at, cron)) > 1:
            raise ValueError("put: give one of delay, at and cron")
        if self.cron is not None and self.dedupe is not None:
            raise ValueError("put: a job by cron has its own id; it takes no dedupe")
        self.priority = _priority(priority, priorities)
        self.wants_reply = bool(reply)
        self.headers = [(name, _header(name, value)) for name, value in (headers or {}).items()]
        self.transaction = transaction

    @property
    def is_immediate(self) -> bool:
        """True if the job is ready at once, and nothing has to be looked up."""
        return (
            not self.delay_s
            and self.due_at_ms is None
            and self.cron is None
            and self.dedupe is None
        )

    @property
    def needs_no_id(self) -> bool:
        """True if the place of the record can be the id of the job."""
        return (
            self.is_immediate
            and self.id is None
            and not self.wants_reply
            and self.transaction is None
        )

    @property
    def is_plain(self) -> bool:
        """True if the record needs no header."""
        return self.needs_no_id and not self.headers

    def due_ms(self, now_ms: int) -> int:
        """Return when the job becomes ready, in ms since 1970."""
        if self.cron is not None:
            from embedlog.queue.cron import next_ms

            return next_ms(self.cron, now_ms)
        if self.due_at_ms is not None:
            return self.due_at_ms
        return now_ms + math.ceil(self.delay_s * 1000)


def _bytes(value: Any, argument: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise arguments.WrongType(
        f"put({argument}={arguments.shown(value)}): expected str, bytes or None"
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise arguments.WrongType(f"put(dedupe={arguments.shown(value)}): expected a str")
    return value


def _header(name: Any, value: Any) -> bytes:
    if not isinstance(name, str) or name.startswith(_OWN):
        raise ValueError(
            f"put(headers={arguments.shown(name)}): expected names as str; {_OWN!r} begins the "
            "queue's own"
        )
    return _bytes(value, f"headers: {name}") or b""


def _seconds(value: Any, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        total = getattr(value, "total_seconds", None)
        if total is None:
            raise arguments.WrongType(
                f"put({argument}={arguments.shown(value)}): expected seconds or a timedelta"
            )
        value = total()
    if not 0 <= value <= DELAY_MAX_S:
        raise ValueError(
            f"put({argument}={value!r}): expected 0 to {DELAY_MAX_S} seconds (10 years)"
        )
    return float(value)


def _moment_ms(value: Any) -> int:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"put(at={value!r}): the time has no zone; give one, such as UTC")
        return math.ceil(value.astimezone(UTC).timestamp() * 1000)
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return math.ceil(value * 1000)
    raise arguments.WrongType(
        f"put(at={arguments.shown(value)}): expected an aware datetime, or seconds since 1970"
    )


def _priority(value: Any, priorities: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise arguments.WrongType(f"put(priority={arguments.shown(value)}): expected an int")
    if not 0 <= value < priorities:
        raise ConfigError(
            f"put(priority={value}): this queue has the priorities 0 to {priorities - 1}; "
            "queue(..., priorities=N) makes N of them"
        )
    return value
