"""Requests and answers that wait: for a time, for a test, or for the end of a rule.

No thread waits for them. The scheduler runs the delayed ones, as a duty.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from embedlog import errors
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.pending import Pending
from embedlog.testing.faults.mapping import afterwards, broken
from wire.api_keys import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.broker.broker import Broker
    from embedlog.runtime import Runtime
    from embedlog.testing.faults.fired import Fired
    from embedlog.testing.interception import Call, Proceed


class HeldRequest:
    """A request, or its answer, that waits until the test releases it.

    with kafka.hold("Fetch") as hold:
        hold.wait(2)
        hold.held[1].release()
    """

    __slots__ = ("_go_on", "_lock", "_on_end", "answer", "api", "client_id", "node_id", "request")

    def __init__(
        self, call: Call, go_on: Callable[[], Any], on_end: Callable[[HeldRequest], None]
    ) -> None:
        """`go_on` returns the answer; `on_end` is called when this object waits no more."""
        self.api = NAMES[call.context.api_key]
        """Name of the API."""
        self.client_id = call.context.client_id or ""
        self.node_id = call.broker.node_id
        """Number of the broker."""
        self.request = call.request
        """The decoded request, only to read it."""
        self.answer: Pending[Any] = Pending()
        self._go_on: Callable[[], Any] | None = go_on
        self._on_end = on_end
        self._lock = ranked_lock(Rank.FAULT_RULE)

    @property
    def is_held(self) -> bool:
        """Whether the request still waits."""
        return self._go_on is not None

    def release(self) -> None:
        """Let the request, or its answer, go on. Does nothing if it has gone on."""
        go_on = self._take()
        if go_on is not None:
            self.answer.follow(go_on())
            self._on_end(self)

    def cut(self, reason: str = "a fault rule cut the connection") -> None:
        """Break the connection in place of an answer. A held request is then never done."""
        if self._take() is not None:
            self.answer.fail(errors.Network(reason))
            self._on_end(self)

    def withdraw(self) -> bool:
        """Wait no more, and leave the rest to the caller; return False if it has gone on."""
        is_withdrawn = self._take() is not None
        if is_withdrawn:
            self._on_end(self)
        return is_withdrawn

    def _take(self) -> Callable[[], Any] | None:
        with self._lock:
            go_on, self._go_on = self._go_on, None
        return go_on

    def __repr__(self) -> str:
        state = "held" if self.is_held else "gone on"
        return f"<{self.api} of {self.client_id!r} at broker {self.node_id}, {state}>"


class Waiting:
    """All requests of a cluster that wait. Every method may be called from any thread."""

    def __init__(self, runtime: Runtime, runs: Callable[[Broker], bool]) -> None:
        """`runs(broker)` tells whether a broker still runs."""
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler
        self._runs = runs
        self._lock = ranked_lock(Rank.FAULT_RULE)
        self._held: dict[HeldRequest, object] = {}
        """Waiting request -> the rule that holds it."""
        self._delayed: list[tuple[int, int, HeldRequest]] = []
        self._numbers = count()
        self._is_duty = False
        self._is_over = False

    def keep(
        self,
        fired: Fired,
        proceed: Proceed,
        begin: Callable[[HeldRequest], None],
        *,
        after_apply: bool,
        drops_left: bool = False,
    ) -> Any:
        """Keep a request, or its answer, and return the pending answer.

        `begin` gets the waiting request. With `drops_left`, a request is not done if its client has
        closed the connection meanwhile.
        """
        call = fired.call

        def hold_answer(response: Any) -> Any:
            held = self._hold(fired, lambda: response)
            if held is None:
                return response
            begin(held)
            return held.answer

        if after_apply:
            return afterwards(proceed(call), hold_answer)
        held = self._hold(fired, lambda: self._late(call, proceed, drops_left))
        if held is None:
            return proceed(call)
        begin(held)
        return held.answer

    def _late(self, call: Call, proceed: Proceed, drops_left: bool) -> Any:
        """Do a request after a wait."""
        connection = call.context.connection
        has_left = connection is not None and not _is_open(connection)
        if (has_left and drops_left) or not self._runs(call.broker):
            return broken()
        answer = proceed(call)
        if has_left and connection is not None:
            # End the fetch that was parked just now: nobody else would.
            call.broker.parked.connection_closed(connection)
        return answer

    def _hold(self, fired: Fired, go_on: Callable[[], Any]) -> HeldRequest | None:
        """Return a waiting request of a rule, or None if it may not wait any more."""
        held = HeldRequest(fired.call, go_on, self._forget)
        with self._lock:
            if self._is_over:
                return None
            self._held[held] = fired.owner
        # A rule that is removed ends the requests that it finds. It may not have seen this one.
        if fired.is_removed() and held.withdraw():
            return None
        return held

    def release_in(self, held: HeldRequest, delay_ms: int) -> None:
        """Release a request after a time."""
        with self._lock:
            due_ms = self._clock.monotonic_ms() + delay_ms
            heappush(self._delayed, (due_ms, next(self._numbers), held))
            is_first, self._is_duty = not self._is_duty, True
        if is_first:
            self._scheduler.add(self)
        else:
            self._scheduler.notify(self)

    def held_by(self, owner: object) -> list[HeldRequest]:
        """Return the waiting requests of a rule, the oldest first."""
        with self._lock:
            return [each for each, holder in self._held.items() if holder is owner]

    def run_once(self, now_ms: int) -> int | None:
        """Release the requests whose time has come."""
        while True:
            with self._lock:
                if not self._delayed:
                    return None
                due_ms, _, held = self._delayed[0]
                if due_ms > now_ms:
                    return due_ms - now_ms
                heappop(self._delayed)
            held.release()

    def move(self, runtime: Runtime) -> None:
        """Go on with another runtime. Break the connections of all waiting requests."""
        self._break_all("the cluster was replaced by another one")
        self._clock = runtime.clock
        self._scheduler = runtime.scheduler

    def close(self) -> None:
        """Break the connections of all waiting requests; nothing waits from here on."""
        self._is_over = True
        self._break_all("the test kit's rules ended")

    def _break_all(self, reason: str) -> None:
        with self._lock:
            left = list(self._held)
            self._delayed.clear()
            was_duty, self._is_duty = self._is_duty, False
        if was_duty:
            self._scheduler.remove(self)
        for each in left:
            each.cut(reason)

    def _forget(self, held: HeldRequest) -> None:
        with self._lock:
            self._held.pop(held, None)


def _is_open(connection: Any) -> bool:
    """Return whether a connection is open; connections in this process say `is_closed`."""
    is_closed = getattr(connection, "is_closed", None)
    return bool(connection.is_open if is_closed is None else not is_closed)
