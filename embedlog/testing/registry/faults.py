"""Faults of the registry: rules that refuse or delay requests, each with a handle."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self

from embedlog.errors import ConfigError, TimedOut
from embedlog.runtime import real_runtime
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.threads import Parked
from embedlog.testing.names import hint
from embedlog.testing.registry.api import ROUTES, VERBS
from embedlog.testing.registry.errors import RegistryError
from embedlog.testing.unfired import UnfiredFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.testing.faults.triggers import Trigger

REQUESTS_MAX = 1_000
"""The number of requests that a fault remembers."""
_METHODS = ("GET", "POST", "PUT", "DELETE")
_CODES = {401: 401, 403: 403, 404: 40403, 409: 409, 422: 42201, 500: 50001, 503: 50003}
"""The error code in the body for a status, unless the fault names one."""


@dataclass(frozen=True, slots=True)
class RegistryRequest:
    """One request that the registry answered."""

    method: str
    path: str
    """Decoded, without the query."""
    verb: str
    """The operation, such as "register"; empty for a path that does not exist."""
    query: dict[str, str]
    body: Any
    """The decoded JSON; None without a body."""
    status: int
    """The status of the answer."""


class RegistryFault:
    """The handle of one rule. Every method may be called from any thread.

    >>> from embedlog.testing import Registry
    >>> with Registry() as registry, registry.fault("lookup", status=500, may_miss=True) as fault:
    ...     fault.hits
    0
    """

    def __init__(
        self,
        what: str,
        *,
        status: int | None,
        code: int | None,
        message: str | None,
        trigger: Trigger,
        delay: float,
        after: bool,
        may_miss: bool,
        forget: Callable[[RegistryFault], None],
    ) -> None:
        """See `Registry.fault`. `forget` takes the rule out of the registry."""
        self.what = what
        self._matches = _matcher(what)
        _expect(status is None or 400 <= status <= 599, f"status={status!r}: expected 400 to 599")
        _expect(status is not None or delay > 0, "a fault needs a status or a delay")
        _expect(delay >= 0, f"delay={delay!r}: expected seconds")
        self._error = None
        if status is not None:
            code = _CODES.get(status, status) if code is None else code
            self._error = (status, {"error_code": code, "message": message or f"fault: {what}"})
        self._trigger = trigger
        self._delay_ms = delay * 1000
        self.after = after
        """Whether the registry does its work before it fails the request."""
        self.may_miss = may_miss
        self._forget = forget
        self._lock = ranked_lock(Rank.REGISTRY_FAULT)
        self._hits = 0
        self._requests: deque[RegistryRequest] = deque(maxlen=REQUESTS_MAX)
        self._waiting: list[Parked] = []
        self._delayed: list[Parked] = []
        self._is_removed = False

    @property
    def hits(self) -> int:
        """How often the fault has acted."""
        return self._hits

    @property
    def seen(self) -> int:
        """The number of matching requests, with those at which the fault did not act."""
        return self._trigger.seen

    @property
    def requests(self) -> list[RegistryRequest]:
        """The matching requests, the newest 1,000."""
        return list(self._requests)

    def take(self, request: RegistryRequest) -> bool:
        """Return whether the fault acts on a request, and count it."""
        with self._lock:
            if self._is_removed or not self._matches(request):
                return False
            self._requests.append(request)
            if not self._trigger.fires():
                return False
            self._hits += 1
            waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.wake()
        return True

    def act(self) -> None:
        """Wait for the delay, then fail the request.

        Raises:
            HttpError: the answer of the fault.
        """
        if self._delay_ms:
            parked = Parked()
            with self._lock:
                self._delayed.append(parked)
                is_removed = self._is_removed
            if not is_removed:
                parked.sleep(self._delay_ms)
        if self._error is not None:
            status, body = self._error
            raise _answer(status, body)

    def wait(self, n: int = 1, timeout: float = 10.0) -> None:
        """Wait until the fault has acted `n` times, at most `timeout` seconds.

        Raises:
            TimedOut: it has not.
        """
        clock = real_runtime().clock
        end_ms = clock.monotonic_ms() + timeout * 1000
        while True:
            parked = Parked()
            with self._lock:
                if self._hits >= n:
                    return
                self._waiting.append(parked)
            left_ms = end_ms - clock.monotonic_ms()
            if left_ms <= 0:
                raise TimedOut(f"{self!r}: expected {n} hits within {timeout} s")
            parked.sleep(left_ms)

    def remove(self) -> None:
        """Take the rule away, and let the requests that it delays go on. Idempotent."""
        with self._lock:
            self._is_removed = True
            delayed, self._delayed = self._delayed, []
        for each in delayed:
            each.wake()
        self._forget(self)

    def check(self) -> None:
        """Raise what the fault has to report.

        Raises:
            UnfiredFault: the fault never acted, and `may_miss` is false.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        if self._hits == 0 and not self.may_miss:
            seen = self.seen
            raise UnfiredFault(
                f"the fault {self.what!r} of the schema registry never acted; it saw {seen} "
                f"matching requests{f', and acts {self._trigger}' if seen else ''}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        __tracebackhide__ = True
        self.remove()
        if kind is None:
            self.check()

    def __repr__(self) -> str:
        return f"<RegistryFault {self.what!r}, {self._trigger}: {self.hits} hits, {self.seen} seen>"


def _answer(status: int, body: dict[str, Any]) -> RegistryError:
    error = RegistryError(status, str(body["message"]))
    error.body = body
    return error


def _expect(is_right: bool, text: str) -> None:
    if not is_right:
        raise ConfigError(text)


def _matcher(what: str) -> Callable[[RegistryRequest], bool]:
    """Return the test of a rule: a method, a verb, a path, or a method and a path.

    Raises:
        ConfigError: no request can match.
    """
    method, _, path = what.partition(" ") if " /" in what else ("", "", what)
    if method and method not in _METHODS:
        raise ConfigError(f"{what!r}: {method} is no method of the registry; known: {_METHODS}")
    if path.startswith("/"):
        _expect_route(path)
        return lambda r: method in {"", r.method} and fnmatchcase(r.path, path)
    if what in _METHODS:
        return lambda r: r.method == what
    if what in VERBS:
        return lambda r: r.verb == what
    raise ConfigError(
        f"{what!r} is no verb, method or path of the schema registry; "
        f"{hint(what, [*VERBS, *_METHODS])}"
    )


def _expect_route(path: str) -> None:
    """Raise ConfigError if no path of the API can match a pattern."""
    first = path[1:].partition("/")[0]
    heads = {row.pattern[1:].partition("/")[0] for row in ROUTES} | {"contexts"}
    if re.search(r"[*?\[]", first) or first in heads:
        return
    near = hint(f"/{first}...", [f"/{head}..." for head in heads])
    raise ConfigError(f"{path!r} is no path of the schema registry; {near}")
