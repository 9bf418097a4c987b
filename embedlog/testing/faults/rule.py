"""`FaultRule`: one rule, and the test's handle of it."""

from __future__ import annotations

from collections import deque

from embedlog.errors import TimedOut
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending
from embedlog.testing.faults.fired import Fired
from embedlog.testing.seen_request import SeenRequest
from embedlog.testing.unfired import UnfiredFault
from wire.api_keys import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol, Self

    from embedlog.runtime.scheduler import Scheduler
    from embedlog.testing.faults.actions import Action
    from embedlog.testing.faults.matching import Matcher
    from embedlog.testing.faults.triggers import Trigger
    from embedlog.testing.interception import Call, Proceed

    class Host(Protocol):
        """The list that a rule belongs to."""

        scheduler: Scheduler

        def removed(self, rule: FaultRule) -> None:
            """Take a rule out of the way of requests."""

        def settled(self, rule: FaultRule) -> None:
            """Note that the rule was checked."""

        def near(self, rule: FaultRule) -> Sequence[str]:
            """Return lines about requests near the rule, and why they did not match."""

        def noticed(self, rule: FaultRule, call: Call) -> None:
            """Note that the rule has acted."""


_MISSES_MAX = 8
_REQUESTS_MAX = 1_000
_DEFAULT_TIMEOUT = 10.0


class FaultRule:
    """A rule that `Kafka.fault` has made. Every method may be called from any thread.

    with kafka.fault("Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
        my_service()
    assert fault.hits == 2

    At the end of its `with`, and when the cluster is closed, a rule that never acted raises
    UnfiredFault, unless it was made with `may_miss=True`.
    """

    def __init__(
        self,
        host: Host,
        number: int,
        matcher: Matcher,
        trigger: Trigger,
        action: Action,
        *,
        may_miss: bool,
    ) -> None:
        self.number = number
        """Place in the order in which the rules were made."""
        self.matcher = matcher
        self._host = host
        self._trigger = trigger
        self._action = action
        self._may_miss = may_miss
        self._lock = ranked_lock(Rank.FAULT_RULE)
        self._hits = 0
        self._requests: deque[SeenRequest] = deque(maxlen=_REQUESTS_MAX)
        self._waiters: list[tuple[int, Pending[None]]] = []
        self._misses: dict[str, int] = {}
        self._near: Sequence[str] | None = None
        """Lines about the requests near the rule, once it is removed."""
        self._is_removed = False

    # For tests

    @property
    def hits(self) -> int:
        """How often the rule has acted."""
        return self._hits

    @property
    def seen(self) -> int:
        """The number of matching requests, with those at which the rule did not act."""
        return self._trigger.seen

    @property
    def requests(self) -> list[SeenRequest]:
        """The matching requests, the newest 1,000."""
        with self._lock:
            return list(self._requests)

    @property
    def is_removed(self) -> bool:
        """Whether the rule acts no more."""
        return self._is_removed

    def wait(self, n: int = 1, timeout: float = _DEFAULT_TIMEOUT) -> None:
        """Wait until the rule has acted `n` times, at most `timeout` seconds.

        Raises:
            TimedOut: it has not; the message names the requests near the rule.
        """
        waiter: Pending[Any] = self._waiter(n)
        if not self._host.scheduler.wait(waiter, round(timeout * 1000)):
            raise TimedOut(f"{self._story()}\nwaited {timeout:g} s for {n} hits")

    async def wait_async(self, n: int = 1, timeout: float = _DEFAULT_TIMEOUT) -> None:
        """Like `wait`, for a test that runs in an event loop: the loop goes on meanwhile."""
        from embedlog.aio.threads import in_thread

        scheduler = self._host.scheduler
        await in_thread(scheduler, "embedlog-fault-wait", lambda: self.wait(n, timeout))

    def remove(self) -> None:
        """Let the rule act no more, and end everything that waits because of it.

        A rule that never acted is still reported when the cluster is closed. Idempotent.
        """
        if not self._is_removed:
            self._is_removed = True
            self._near = self._host.near(self)
            self._host.removed(self)
            self._action.end(self)

    def check(self) -> None:
        """Raise what the rule has to report: a function's error, or that it never acted.

        Raises:
            UnfiredFault: the rule never acted, and `may_miss` is False.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        self._host.settled(self)
        for guarded in (self.matcher.where, getattr(self._action, "function", None)):
            if guarded is not None and guarded.failure is not None:
                failure, guarded.failure = guarded.failure, None
                raise failure
        if self._hits == 0 and not self._may_miss:
            raise UnfiredFault(self._story())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        __tracebackhide__ = True
        self.remove()
        if kind is None:
            self.check()
        else:
            self._host.settled(self)  # the test fails anyway, for a reason of its own

    def __str__(self) -> str:
        return ", ".join(each for each in (str(self.matcher), str(self._action)) if each)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self}, {self._trigger}: {self.hits} hits, {self.seen} seen>"
        )

    # For the stage

    def handle(self, call: Call, proceed: Proceed) -> Any:
        """Answer a request, or pass it on."""
        items, why = self.matcher.match(call)
        if why:
            self._note_miss(call, why)
            return proceed(call)
        action = self._action
        if not action.is_late and not self._fires(call):
            return proceed(call)
        fired = Fired(
            self,
            call,
            items,
            hit=self._hit,
            fires=lambda: self._fires(call),
            is_removed=lambda: self._is_removed,
        )
        return action.perform(fired, proceed)

    def _fires(self, call: Call) -> bool:
        context = call.context
        noted = SeenRequest(
            NAMES[context.api_key], context.api_version, context.client_id, call.broker.node_id
        )
        with self._lock:
            self._requests.append(noted)
            return not self._is_removed and self._trigger.fires()

    def _hit(self, call: Call) -> None:
        with self._lock:
            self._hits += 1
            ready = [waiter for n, waiter in self._waiters if n <= self._hits]
            self._waiters = [each for each in self._waiters if each[0] > self._hits]
        self._host.noticed(self, call)
        for waiter in ready:
            waiter.complete(None)

    def _waiter(self, n: int) -> Pending[None]:
        waiter: Pending[None] = Pending()
        with self._lock:
            is_ready = self._hits >= n
            if not is_ready:
                self._waiters.append((n, waiter))
        if is_ready:
            waiter.complete(None)
        return waiter

    def _note_miss(self, call: Call, why: str) -> None:
        misses = self._misses
        line = f"{NAMES[call.context.api_key]}: {why}"
        if line in misses or len(misses) < _MISSES_MAX:
            misses[line] = misses.get(line, 0) + 1

    def _story(self) -> str:
        lines = [
            f"the rule [{self}] has acted {self._hits} times; it saw {self.seen} matching requests"
        ]
        if self._hits == 0:
            lines[0] = f"the rule [{self}] never acted; it saw {self.seen} matching requests"
            if self.seen:
                lines[0] += f", and acts {self._trigger}"
        if not self.seen:
            lines += [f"  {count} x {line}" for line, count in self._misses.items()]
            known = set(self._misses)
            near = self._host.near(self) if self._near is None else self._near
            lines += [f"  {each}" for each in near if each.partition(" x ")[2] not in known]
        return "\n".join(lines)
